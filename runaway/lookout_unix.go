// SPDX-License-Identifier: Apache-2.0

//go:build unix

package runaway

import (
	"io/fs"
	"syscall"
)

// inode tells one file from every other that is there at the same time.
type inode struct{ dev, ino uint64 }

// lstat is os.Lstat without what nobody asks for here. An iteration with a journal spends more time on it than on
// anything else, and it takes about two thirds as long.
func lstat(path string) (inode, error) {
	var st syscall.Stat_t
	for {
		switch err := syscall.Lstat(path, &st); err {
		case nil:
			return inode{uint64(st.Dev), uint64(st.Ino)}, nil
		case syscall.EINTR:
		case syscall.ENOENT:
			return inode{}, fs.ErrNotExist // expected, so it must not cost memory; the caller knows the path
		default:
			return inode{}, &fs.PathError{Op: "lstat", Path: path, Err: err}
		}
	}
}
