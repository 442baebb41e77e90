// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"encoding/binary"
	"iter"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// How anything in the workspace is opened: no component may be a link of either kind or lead upward or into another
// mount; a FIFO does not block, a terminal does not become ours.
const (
	resolve  = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV
	common   = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	openFile = common
	openDir  = common | unix.O_DIRECTORY
)

// open opens a path below dir. A kernel without openat2 answers ENOSYS, which matches errors.ErrUnsupported.
func open(dir int, p string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: flags, Resolve: resolve}
	for {
		if fd, err := unix.Openat2(dir, p, &how); err != unix.EINTR {
			return fd, err
		}
	}
}

// open is open, or what is as good as that where nobody else is there.
func (x *extraction) open(dir int, p string, flags uint64) (int, error) {
	fd, err := open(dir, p, flags)
	if err == unix.ENOSYS && x.req.Alone {
		return openAlone(dir, p, flags)
	}
	return fd, err
}

// openAlone follows the names of a path one by one. With somebody else in the tree a directory could be moved meanwhile.
func openAlone(dir int, p string, flags uint64) (int, error) {
	var top unix.Stat_t
	if err := unix.Fstat(dir, &top); err != nil {
		return -1, err
	}
	at, names := dir, strings.Split(p, "/")
	for i, name := range names {
		how := uint64(openDir)
		if i == len(names)-1 {
			how = flags
		}
		next, err := openName(at, name, how, top.Dev)
		if at != dir {
			unix.Close(at)
		}
		if err != nil {
			return -1, err
		}
		at = next
	}
	return at, nil
}

// openName opens one name in the file system of that number, with the answers of openat2.
func openName(dir int, name string, flags, device uint64) (int, error) {
	if name == ".." || name == "" {
		return -1, unix.EXDEV
	}
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err != nil:
		return -1, err
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return -1, unix.ELOOP
	case st.Dev != device:
		return -1, unix.EXDEV
	}
	for {
		if fd, err := unix.Openat(dir, name, int(flags), 0); err != unix.EINTR {
			return fd, err
		}
	}
}

// entries yields the names in a directory from its current offset on.
func entries(fd int) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		buf := make([]byte, 16<<10)
		for {
			n, err := unix.Getdents(fd, buf)
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				yield("", err)
				return
			}
			if n <= 0 {
				return
			}
			for rest := buf[:n]; len(rest) > 0; {
				var name string
				if name, rest = parseDirent(rest); name == "." || name == ".." {
					continue
				}
				if !yield(name, nil) {
					return
				}
			}
		}
	}
}

// parseDirent splits the first record of what getdents64 wrote from the rest.
func parseDirent(b []byte) (string, []byte) {
	const (
		reclen = unsafe.Offsetof(unix.Dirent{}.Reclen)
		name   = unsafe.Offsetof(unix.Dirent{}.Name)
	)
	size := int(binary.NativeEndian.Uint16(b[reclen:]))
	text, _, _ := bytes.Cut(b[name:size], []byte{0})
	return string(text), b[size:]
}
