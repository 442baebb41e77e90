// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"encoding/binary"
	"iter"
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
