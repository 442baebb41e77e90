// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/evoseal/containment/rollback/internal/object"
)

// Diff says what turns checkpoint a into checkpoint b, sorted by path. Every entry of a directory that only one of them
// has is listed. Directories that are the same are not read.
func (s *Store) Diff(ctx context.Context, a, b ID) ([]Change, error) {
	leave, err := s.enter(ctx, false)
	if err != nil {
		return nil, err
	}
	defer leave()
	from, err := s.manifest(a)
	if err != nil {
		return nil, err
	}
	to, err := s.manifest(b)
	if err != nil {
		return nil, err
	}
	d := &differ{ctx: ctx, s: s, a: a, b: b}
	d.note(".", sameEntry(&from.Root, &to.Root))
	if err := d.dirs("", &from.Root, &to.Root); err != nil {
		return nil, err
	}
	slices.SortFunc(d.changes, func(x, y Change) int { return strings.Compare(x.Path, y.Path) })
	return d.changes, nil
}

type differ struct {
	ctx     context.Context // of one call of Diff
	s       *Store
	a, b    ID
	changes []Change
}

func (d *differ) note(path string, op Op) {
	if op != 0 {
		d.changes = append(d.changes, Change{Path: path, Op: op})
	}
}

// dirs compares what is in two directories; nil stands for one that is not there.
func (d *differ) dirs(at string, from, to *object.Entry) error {
	if from != nil && to != nil && from.Data == to.Data {
		return nil
	}
	if err := d.ctx.Err(); err != nil {
		return err
	}
	old, err := d.read(d.a, from)
	if err != nil {
		return err
	}
	now, err := d.read(d.b, to)
	if err != nil {
		return err
	}
	for len(old) > 0 || len(now) > 0 {
		var x, y *object.Entry
		if len(now) == 0 || len(old) > 0 && old[0].Name <= now[0].Name {
			x = &old[0]
		}
		if len(old) == 0 || len(now) > 0 && now[0].Name <= old[0].Name {
			y = &now[0]
		}
		if x != nil {
			old = old[1:]
		}
		if y != nil {
			now = now[1:]
		}
		if err := d.entry(at, x, y); err != nil {
			return err
		}
	}
	return nil
}

func (d *differ) read(id ID, dir *object.Entry) ([]object.Entry, error) {
	if dir == nil {
		return nil, nil
	}
	entries, err := d.s.tree(dir.Data)
	return entries, corrupt(id, err)
}

// entry compares one name; at least one of the two is there.
func (d *differ) entry(at string, x, y *object.Entry) error {
	var name string
	switch {
	case x == nil:
		name = path.Join(at, y.Name)
		d.note(name, Create)
	case y == nil:
		name = path.Join(at, x.Name)
		d.note(name, Remove)
	default:
		name = path.Join(at, x.Name)
		d.note(name, sameEntry(x, y))
	}
	x, y = onlyDir(x), onlyDir(y)
	if x == nil && y == nil {
		return nil
	}
	return d.dirs(name, x, y)
}

func onlyDir(e *object.Entry) *object.Entry {
	if e == nil || e.Kind != object.Dir {
		return nil
	}
	return e
}

// sameEntry says how two entries of one name differ; 0: not at all. What is in a directory is not looked at.
func sameEntry(x, y *object.Entry) Op {
	switch {
	case x.Kind != y.Kind:
		return Retype
	case x.Kind == object.File && (x.Data != y.Data || x.Size != y.Size), x.Kind == object.Link && x.Target != y.Target:
		return Replace
	case x.Mode != y.Mode, x.UID != y.UID, x.GID != y.GID, x.Sec != y.Sec, x.Nsec != y.Nsec, x.Group != y.Group,
		!slices.Equal(x.Xattrs, y.Xattrs):
		return Attributes
	}
	return 0
}
