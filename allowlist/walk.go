// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// kind is the type of a directory entry.
type kind uint8

const (
	kindUnknown kind = iota // the file system did not say
	kindFile
	kindDir
	kindLink
	kindOther // device, FIFO, socket
	kindMount // a mount point: what lies below belongs to another file system
)

func (k kind) String() string {
	return [...]string{"unknown", "regular file", "directory", "symbolic link", "special file", "mount point"}[k]
}

// Bits of meta.perm.
const (
	permSpecial    = 0o7000 // setuid, setgid, sticky
	permOwnerWrite = 0o200
)

// meta is what the kernel says about one entry.
type meta struct {
	kind         kind
	perm         uint32 // permissions with the special bits
	uid, gid     uint32
	nlink        uint64
	size         int64
	dev, ino     uint64
	mtime, ctime int64 // nanoseconds
}

// same tells whether both describe one inode.
func (m meta) same(o meta) bool { return m.ino != 0 && m.dev == o.dev && m.ino == o.ino }

// entry is one name of a directory.
type entry struct {
	name string
	kind kind // may be kindUnknown
}

// dir is a held directory of the tree. Names are single components that never are followed if they are links. There are
// two implementations: openat2 on Linux, and os.Root elsewhere and where openat2 is refused.
type dir interface {
	open(path string) (dir, error) // every component a real directory of the same file system; *refusal if not
	list() ([]entry, error)        // unordered
	listOnce() ([]entry, error)    // the same, the first time, for a handle that nobody else has
	lstat(name string) (meta, error)
	readlink(name string) (string, error)
	openFile(name string) (*os.File, meta, error) // a regular file, to read; *refusal for anything else
	digest(name string) (Digest, meta, error)     // of what openFile would open; the meta is from before it was read
	createFile(name string) (*os.File, error)     // must not exist; 0600
	mkdir(name string) error
	exchange(a, b string) error // of two files, so that both names always exist
	place(from, to string) error
	remove(name string) error // a file
	rmdir(name string) error
	self() (meta, error)
	chmod(perm uint32) error
	setTime(name string, mtime int64) error // of a file, or "." for the directory; in nanoseconds
	sync() error
	close() error
}

// refusal is what the tree itself speaks against an edit: a verdict and no fault of the system.
type refusal struct {
	code   Code
	detail string
}

func (r *refusal) Error() string { return r.detail }
func (r *refusal) Unwrap() error { return r.code }

// refuseKind is the refusal of something that should be of another kind, or nil.
func refuseKind(name string, got, want kind) error {
	if got == want {
		return nil
	}
	code := ErrFileType
	if got == kindLink {
		code = ErrSymlink
	}
	return &refusal{code, fmt.Sprintf("%+q is a %v, not a %v", name, got, want)}
}

// asRefusal finds the verdict in an error. A fault of the system has none.
func asRefusal(err error) (*refusal, bool) { return errors.AsType[*refusal](err) }

func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// split divides a path into the directory ("" for the root of the tree) and the last component.
func split(path string) (parent, base string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// join is path.Join for clean paths, where "" is the root of the tree.
func join(parent, base string) string {
	if parent == "" {
		return base
	}
	return parent + "/" + base
}

// ancestors returns the directories on the way to a path, from the root ("") down.
func ancestors(path string) []string {
	dirs := []string{""}
	for i, c := range []byte(path) {
		if c == '/' {
			dirs = append(dirs, path[:i])
		}
	}
	return dirs
}
