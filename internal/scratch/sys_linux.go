// SPDX-License-Identifier: Apache-2.0

package scratch

import (
	"iter"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
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

// fileID tells one directory from another for as long as one of us holds it open.
type fileID struct{ dev, ino uint64 }

func idOf(st *unix.Stat_t) fileID { return fileID{uint64(st.Dev), st.Ino} }

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
				var name []byte
				var typ byte
				if name, typ, _, rest = fsys.ParseDirent(rest); string(name) == "." || string(name) == ".." {
					continue
				}
				if !yield(entry{name: string(name), typ: uint32(typ) << 12}, nil) {
					return
				}
			}
		}
	}
}
