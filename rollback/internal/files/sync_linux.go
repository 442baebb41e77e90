// SPDX-License-Identifier: Apache-2.0

package files

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
)

func startWriteout(f *os.File) { fsys.StartWriteout(int(f.Fd())) }

// datasync leaves out what no reader needs, such as the time of the last change.
func datasync(f *os.File) error {
	err := fsys.Retry(func() error { return unix.Fdatasync(int(f.Fd())) })
	return os.NewSyscallError("fdatasync", err)
}
