// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"os"

	"golang.org/x/sys/unix"
)

// datasync also writes the size, which is needed to find the data again, but no times.
func datasync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
