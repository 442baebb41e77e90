// SPDX-License-Identifier: Apache-2.0

package scratch

import (
	"bytes"
	"encoding/binary"
	"iter"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kept is the mode bits that a copy keeps: no set-id and no sticky bit.
const kept = 0o777

// Flags for entries that somebody else may exchange at any moment: a link is not followed, a FIFO does not block, a
// terminal does not become ours.
const (
	openFile = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	openDir  = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_DIRECTORY | unix.O_CLOEXEC
)

// again repeats a call that a signal interrupted, which some file systems report even under SA_RESTART.
func again[T any](call func() (T, error)) (T, error) {
	for {
		v, err := call()
		if err != unix.EINTR {
			return v, err
		}
	}
}

func openat(dir int, name string, flags int, mode uint32) (int, error) {
	return again(func() (int, error) { return unix.Openat(dir, name, flags, mode) })
}

func fstat(fd int) (st unix.Stat_t, err error) {
	err = unix.Fstat(fd, &st)
	return st, err
}

func lstatat(dir int, name string) (st unix.Stat_t, err error) {
	err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

// fileID tells one directory from another for as long as one of us holds it open.
type fileID struct{ dev, ino uint64 }

func idOf(st *unix.Stat_t) fileID { return fileID{uint64(st.Dev), st.Ino} }

// kindOf names what a mode says, for people.
func kindOf(mode uint32) string {
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

// entry is what a directory says about a name. The type, S_IFMT bits or 0 for unknown, is a hint and never believed.
type entry struct {
	name string
	typ  uint32
}

// entries reads the directory from its current offset, one buffer at a time.
func entries(fd int, buf []byte) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for {
			n, err := again(func() (int, error) { return unix.Getdents(fd, buf) })
			if err != nil {
				yield(entry{}, err)
				return
			}
			if n <= 0 {
				return
			}
			for rest := buf[:n]; len(rest) > 0; {
				var e entry
				if e, rest = parseDirent(rest); e.name == "." || e.name == ".." {
					continue
				}
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// parseDirent splits the first record of what getdents64 wrote from the rest.
func parseDirent(b []byte) (entry, []byte) {
	const (
		reclen = unsafe.Offsetof(unix.Dirent{}.Reclen)
		typ    = unsafe.Offsetof(unix.Dirent{}.Type)
		name   = unsafe.Offsetof(unix.Dirent{}.Name)
	)
	size := int(binary.NativeEndian.Uint16(b[reclen:]))
	text, _, _ := bytes.Cut(b[name:size], []byte{0})
	return entry{name: string(text), typ: uint32(b[typ]) << 12}, b[size:]
}
