// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/rollback/internal/object"
)

// listed is an entry of the directory in hand. A NUL follows the name in memory, so that it can be given to the kernel
// as it is.
type listed struct {
	name string
	ino  uint64 // of a directory, if the file system's listings tell; else 0
}

// list reads the names of a directory that are captured, sorts them, and notes those that are not.
func (w *worker) list(fd int, dir *Node, path string) error {
	w.listed = w.listed[:0]
	for {
		var size int
		err := fsys.Retry(func() (err error) {
			size, err = unix.Getdents(fd, w.dents[:])
			return err
		})
		switch {
		case err == unix.ENOENT: // the directory itself was removed
			return errStale
		case err != nil:
			return err
		case size <= 0:
			slices.SortFunc(w.listed, func(a, b listed) int { return strings.Compare(a.name, b.name) })
			return nil
		}
		for rest := w.dents[:size]; len(rest) > 0; {
			var e listed
			var name []byte
			var typ byte
			if name, typ, e.ino, rest = fsys.ParseDirent(rest); w.excluded(name, dir, path) {
				continue
			}
			if typ != unix.DT_DIR || !w.timing.inode {
				e.ino = 0
			}
			e.name = w.keep(name)
			w.listed = append(w.listed, e)
		}
		// A directory with more names than a tree may have must not fill the memory first.
		if n := int64(len(w.listed)); n > w.o.Limits.Files && !w.o.Tolerate {
			w.limit(path, "Files", n, w.o.Limits.Files)
		}
		if w.stopped.Load() {
			return nil
		}
	}
}

// excluded reports whether the name is none of ours, and notes it unless it is the directory itself or its parent.
func (w *worker) excluded(name []byte, dir *Node, path string) bool {
	if len(name) <= 2 && (string(name) == "." || string(name) == "..") {
		return true
	}
	s := unsafe.String(unsafe.SliceData(name), len(name)) // not kept beyond this call
	switch {
	case object.IsGit(s):
		w.notCaptured(join(path, s), Git, "")
	case dir.Parent == nil && strings.HasPrefix(s, StagingPrefix):
		w.staging = append(w.staging, strings.Clone(s))
	case w.o.Exclude.match(s, func() string { return join(path, s) }):
		w.notCaptured(join(path, s), Excluded, "")
	default:
		return false
	}
	return true
}

// keep copies a name to where nodes can hold it, many names to one allocation.
func (w *worker) keep(name []byte) string {
	const size = 32 << 10
	if cap(w.arena)-len(w.arena) < len(name)+1 {
		w.arena = make([]byte, 0, size)
	}
	at := len(w.arena)
	w.arena = append(append(w.arena, name...), 0)
	return unsafe.String(&w.arena[at], len(name))
}
