// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/evoseal/containment/rollback/internal/object"
)

// FS shows a checkpoint as a file system, which also has [fs.ReadDirFS], [fs.StatFS], [fs.ReadFileFS] and
// [fs.ReadLinkFS]. Nothing comes out of it that was not hashed: a damaged object is a [*CorruptError] inside the
// [fs.PathError]. Links are followed inside the checkpoint. One that leads nowhere there, because its target is missing,
// absolute or above the root, is described as the link itself, and reading it is [fs.ErrNotExist]. Each operation takes the store's lock for a moment, and a file that is open keeps at most one chunk
// in memory. If the checkpoint is deleted and pruned meanwhile, what was not read yet is an error.
//
// Names that are not valid UTF-8 are listed, but cannot be opened: [fs.ValidPath] forbids them.
func (s *Store) FS(id ID) (fs.FS, error) {
	leave, err := s.enter(context.Background(), false)
	if err != nil {
		return nil, err
	}
	defer leave()
	m, err := s.manifest(id)
	if err != nil {
		return nil, err
	}
	return &checkpointFS{s: s, id: id, root: m.Root, dirs: map[object.Hash][]object.Entry{}}, nil
}

type checkpointFS struct {
	s    *Store
	id   ID
	root object.Entry

	mu   sync.Mutex
	dirs map[object.Hash][]object.Entry // read lately
}

const (
	maxHops = 40  // links on one way, as in the kernel
	maxDirs = 256 // directories in memory
)

// errHops: a link leads to itself, in the end.
var errHops = fmt.Errorf("too many links: %w", fs.ErrNotExist)

// readDir returns the entries of a directory, which must not be changed.
func (c *checkpointFS) readDir(dir *object.Entry) ([]object.Entry, error) {
	c.mu.Lock()
	entries, ok := c.dirs[dir.Data.Hash]
	c.mu.Unlock()
	if ok {
		return entries, nil
	}
	leave, err := c.s.enter(context.Background(), false)
	if err != nil {
		return nil, err
	}
	entries, err = c.s.tree(dir.Data)
	leave()
	if err != nil {
		return nil, corrupt(c.id, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.dirs) >= maxDirs {
		clear(c.dirs)
	}
	c.dirs[dir.Data.Hash] = entries
	return entries, nil
}

// find returns the entry of a path; a link at its end is followed or returned.
func (c *checkpointFS) find(op, name string, follow bool) (*object.Entry, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	e, err := c.walk(name, follow)
	if follow && errors.Is(err, fs.ErrNotExist) {
		if link, linkErr := c.walk(name, false); linkErr == nil && link.Kind == object.Link {
			return link, nil
		}
	}
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return e, nil
}

// walk goes down from the root, with what is still to go as a list that a link puts its target in front of.
func (c *checkpointFS) walk(name string, follow bool) (*object.Entry, error) {
	way, rest := []*object.Entry{&c.root}, strings.Split(name, "/")
	for hops := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(way) == 1 {
				return nil, fs.ErrNotExist // out of the checkpoint
			}
			way = way[:len(way)-1]
			continue
		}
		e, err := c.child(way[len(way)-1], part)
		if err != nil {
			return nil, err
		}
		if e.Kind != object.Link || len(rest) == 0 && !follow {
			if len(rest) > 0 && e.Kind != object.Dir {
				return nil, fs.ErrNotExist
			}
			way = append(way, e)
			continue
		}
		if hops++; hops > maxHops {
			return nil, errHops
		}
		if path.IsAbs(e.Target) {
			return nil, fs.ErrNotExist
		}
		rest = append(strings.Split(e.Target, "/"), rest...)
	}
	return way[len(way)-1], nil
}

func (c *checkpointFS) child(dir *object.Entry, name string) (*object.Entry, error) {
	if dir.Kind != object.Dir {
		return nil, fs.ErrNotExist
	}
	entries, err := c.readDir(dir)
	if err != nil {
		return nil, err
	}
	if i, ok := findName(entries, name); ok {
		return &entries[i], nil
	}
	return nil, fs.ErrNotExist
}

// Open opens a file or directory for reading.
func (c *checkpointFS) Open(name string) (fs.File, error) {
	e, err := c.find("open", name, true)
	if err != nil {
		return nil, err
	}
	info := newInfo(path.Base(name), e)
	if e.Kind != object.Dir {
		return c.openFile(name, info, e)
	}
	entries, err := c.readDir(e)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &openDir{name: name, info: info, entries: entries}, nil
}

// ReadDir lists a directory in byte order of the names.
func (c *checkpointFS) ReadDir(name string) ([]fs.DirEntry, error) {
	e, err := c.find("readdir", name, true)
	if err != nil {
		return nil, err
	}
	if e.Kind != object.Dir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a directory")}
	}
	entries, err := c.readDir(e)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return dirEntries(entries), nil
}

// Stat describes what a path leads to.
func (c *checkpointFS) Stat(name string) (fs.FileInfo, error) { return c.stat("stat", name, true) }

// Lstat describes a link itself.
func (c *checkpointFS) Lstat(name string) (fs.FileInfo, error) { return c.stat("lstat", name, false) }

func (c *checkpointFS) stat(op, name string, follow bool) (fs.FileInfo, error) {
	e, err := c.find(op, name, follow)
	if err != nil {
		return nil, err
	}
	return newInfo(path.Base(name), e), nil
}

// ReadLink returns the target as it was captured.
func (c *checkpointFS) ReadLink(name string) (string, error) {
	e, err := c.find("readlink", name, false)
	if err != nil {
		return "", err
	}
	if e.Kind != object.Link {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	return e.Target, nil
}
