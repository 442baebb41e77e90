// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/evoseal/containment/rollback/internal/object"
)

// info describes an entry to io/fs. Modes have the bits of set-id and sticky where package fs has them.
type info struct {
	name string
	e    *object.Entry
}

func newInfo(name string, e *object.Entry) info { return info{name: name, e: e} }

func (i info) Name() string { return i.name }

func (i info) Size() int64 {
	if i.e.Kind == object.Link {
		return int64(len(i.e.Target))
	}
	return i.e.Size
}

func (i info) Mode() fs.FileMode {
	mode := i.Type() | fs.FileMode(i.e.Mode&0o777)
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if i.e.Mode&bit != 0 {
			mode |= flag
		}
	}
	return mode
}

func (i info) Type() fs.FileMode {
	switch i.e.Kind {
	case object.Dir:
		return fs.ModeDir
	case object.Link:
		return fs.ModeSymlink
	}
	return 0
}

func (i info) ModTime() time.Time         { return time.Unix(i.e.Sec, int64(i.e.Nsec)) }
func (i info) IsDir() bool                { return i.e.Kind == object.Dir }
func (i info) Sys() any                   { return nil }
func (i info) Info() (fs.FileInfo, error) { return i, nil }
func (i info) String() string             { return fs.FormatFileInfo(i) }

func dirEntries(entries []object.Entry) []fs.DirEntry {
	list := make([]fs.DirEntry, len(entries))
	for i := range entries {
		list[i] = newInfo(entries[i].Name, &entries[i])
	}
	return list
}

func findName(entries []object.Entry, name string) (int, bool) {
	return slices.BinarySearchFunc(entries, name, func(e object.Entry, n string) int { return strings.Compare(e.Name, n) })
}

// openDir is an open directory.
type openDir struct {
	name    string
	info    info
	entries []object.Entry
	at      int
	closed  bool
}

func (d *openDir) Stat() (fs.FileInfo, error) {
	if d.closed {
		return nil, &fs.PathError{Op: "stat", Path: d.name, Err: fs.ErrClosed}
	}
	return d.info, nil
}

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: fs.ErrInvalid}
}

func (d *openDir) Close() error {
	d.closed = true
	return nil
}

// ReadDir returns the next n entries, or all that are left.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if d.closed {
		return nil, &fs.PathError{Op: "readdir", Path: d.name, Err: fs.ErrClosed}
	}
	rest := d.entries[d.at:]
	if n > 0 && len(rest) == 0 {
		return nil, io.EOF
	}
	if n > 0 && n < len(rest) {
		rest = rest[:n]
	}
	d.at += len(rest)
	return dirEntries(rest), nil
}
