// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package runaway

import (
	"errors"
	"fmt"
	"io/fs"
)

// onlyOurs cannot tell here who may write to a directory, so it refuses.
func onlyOurs(dir string, _ fs.FileInfo) (inode, error) {
	return inode{}, fmt.Errorf("%w: %q: who can write to it cannot be told on this system: %w", ErrUntrusted, dir,
		errors.ErrUnsupported)
}
