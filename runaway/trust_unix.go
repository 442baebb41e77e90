// SPDX-License-Identifier: Apache-2.0

//go:build unix

package runaway

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// onlyOurs refuses a directory in which somebody else than this user and root can make and remove files. It returns
// which one it accepted.
func onlyOurs(dir string, info fs.FileInfo) (inode, error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return inode{}, fmt.Errorf("%w: %q is not a directory", ErrUntrusted, dir)
	case !ok || stat.Uid != 0 && int(stat.Uid) != os.Geteuid():
		return inode{}, fmt.Errorf("%w: %q belongs to another user; use a directory of your own", ErrUntrusted, dir)
	case info.Mode().Perm()&0o022 != 0:
		return inode{}, fmt.Errorf("%w: others can write to %q; chmod go-w it", ErrUntrusted, dir)
	}
	return inode{uint64(stat.Dev), uint64(stat.Ino)}, nil
}
