// SPDX-License-Identifier: Apache-2.0

package fsys

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Lstat looks at a name in a directory and follows nothing.
func Lstat(dir int, name string) (st unix.Stat_t, err error) {
	err = Retry(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return st, err
}

// Fstat looks at what a handle holds, an O_PATH handle too.
func Fstat(fd int) (st unix.Stat_t, err error) {
	err = Retry(func() error { return unix.Fstat(fd, &st) })
	return st, err
}

// Kind names what a mode says, for people.
func Kind(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return "regular file"
	case unix.S_IFDIR:
		return "directory"
	case unix.S_IFLNK:
		return "symbolic link"
	case unix.S_IFIFO:
		return "FIFO"
	case unix.S_IFSOCK:
		return "socket"
	case unix.S_IFCHR:
		return "character device"
	case unix.S_IFBLK:
		return "block device"
	}
	return "file of unknown kind"
}

// ParseDirent splits the first record of what getdents64 wrote from the rest. The name is a part of b; "." and ".." are
// among the records. The type, a DT_ constant, is a hint and may be unknown.
func ParseDirent(b []byte) (name []byte, typ byte, ino uint64, rest []byte) {
	const (
		offIno    = unsafe.Offsetof(unix.Dirent{}.Ino)
		offReclen = unsafe.Offsetof(unix.Dirent{}.Reclen)
		offType   = unsafe.Offsetof(unix.Dirent{}.Type)
		offName   = unsafe.Offsetof(unix.Dirent{}.Name)
	)
	size := int(binary.NativeEndian.Uint16(b[offReclen:]))
	name = b[offName:size]
	if end := bytes.IndexByte(name, 0); end >= 0 {
		name = name[:end]
	}
	return name, b[offType], binary.NativeEndian.Uint64(b[offIno:]), b[size:]
}

// Statfs returns the figures of the file system that a handle is on; Type is its magic number.
func Statfs(fd int) (st unix.Statfs_t, err error) {
	err = Retry(func() error { return unix.Fstatfs(fd, &st) })
	return st, err
}

// casefold is FS_CASEFOLD_FL of linux/fs.h: names in this directory are compared without case.
const casefold = 0x4000_0000

// Folds reports whether a directory compares names without case by its flag, as ext4, F2FS and tmpfs can. A file system
// that has no flags says no; FAT and its like fold all the same.
func Folds(fd int) bool {
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	return err == nil && flags&casefold != 0
}
