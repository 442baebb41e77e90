// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"fmt"
)

// view holds the directories that one Plan or one Apply looks at. It never outlives that call: what was safe a moment
// ago need not be safe now.
type view struct {
	t    *Tree
	dirs map[string]*viewDir
}

// viewDir is a directory on the way to a target, held open.
type viewDir struct {
	dir    dir
	path   string
	listed bool
	folded map[string][]string // fold key → names on disk
}

func (t *Tree) newView() *view { return &view{t: t, dirs: map[string]*viewDir{}} }

func (v *view) close() {
	for _, d := range v.dirs {
		d.dir.close()
	}
}

// directory opens a directory below the handle of its parent. The error is a *refusal, or absent, or a fault.
func (v *view) directory(path string) (*viewDir, error) {
	if known := v.dirs[path]; known != nil {
		return known, nil
	}
	var opened dir
	var err error
	if path == "" {
		opened, err = v.t.openDir("")
	} else {
		parent, base := split(path)
		var above *viewDir
		if above, err = v.directory(parent); err != nil {
			return nil, err
		}
		opened, err = above.dir.open(base)
	}
	if err != nil {
		return nil, err
	}
	return v.add(path, opened), nil
}

func (v *view) add(path string, opened dir) *viewDir {
	d := &viewDir{dir: opened, path: path}
	v.dirs[path] = d
	return d
}

// list reads the names once in the life of the view.
func (d *viewDir) list() error {
	if d.listed {
		return nil
	}
	entries, err := d.dir.list()
	if err != nil {
		return fmt.Errorf("list %+q: %w", d.path, err)
	}
	d.folded = make(map[string][]string, len(entries))
	for _, e := range entries {
		key := foldKey(e.name)
		d.folded[key] = append(d.folded[key], e.name)
	}
	d.listed = true
	return nil
}

// examine judges one component of a path: the directory that holds it, and its siblings.
func (d *viewDir) examine(name string) error {
	if err := d.list(); err != nil {
		return err
	}
	if len(d.folded[".git"]) > 0 && d.path != "" {
		return &refusal{ErrNestedRepository, fmt.Sprintf("%+q is a repository of its own", d.path)}
	}
	for _, twin := range d.folded[foldKey(name)] {
		if twin != name {
			return &refusal{ErrCaseCollision, fmt.Sprintf("%+q is there, and differs only in spelling", join(d.path, twin))}
		}
	}
	return nil
}

// target judges the way to a path and the path itself, as section 8 of the design orders it. For Modify and Delete it
// returns what is there.
func (v *view) target(op Op, path string) (content []byte, m meta, err error) {
	for _, dir := range ancestors(path) {
		held, err := v.directory(dir)
		if isAbsent(err) && op == Create {
			return nil, meta{}, nil // made by Apply
		}
		if isAbsent(err) {
			return nil, meta{}, &refusal{ErrConflict, "there is no such file"}
		}
		if err != nil {
			return nil, meta{}, err
		}
		if err := held.examine(component(path, dir)); err != nil {
			return nil, meta{}, err
		}
	}
	parent, base := split(path)
	return targetIn(v.dirs[parent].dir, op, base, v.t.opts.MaxRead)
}

// component returns the part of path directly below dir.
func component(path, dir string) string {
	rest := path
	if dir != "" {
		rest = path[len(dir)+1:]
	}
	for i := range len(rest) {
		if rest[i] == '/' {
			return rest[:i]
		}
	}
	return rest
}

// targetIn judges the last component.
func targetIn(d dir, op Op, name string, limit int64) ([]byte, meta, error) {
	m, err := d.lstat(name)
	switch {
	case isAbsent(err) && op == Create:
		return nil, meta{}, nil
	case isAbsent(err):
		return nil, meta{}, &refusal{ErrConflict, "there is no such file"}
	case err != nil:
		return nil, meta{}, err
	case m.kind == kindLink:
		return nil, m, refuseKind(name, kindLink, kindFile)
	case op == Create:
		return nil, m, &refusal{ErrConflict, fmt.Sprintf("a %v is there already", m.kind)}
	case m.kind != kindFile:
		return nil, m, refuseKind(name, m.kind, kindFile)
	}
	if err := editable(m); err != nil {
		return nil, m, err
	}
	content, m, err := readIn(d, name, limit)
	if m.kind == kindFile {
		// The file may have changed between the two looks: what was opened counts.
		if judged := editable(m); judged != nil {
			return nil, m, judged
		}
	}
	if isAbsent(err) {
		err = &refusal{ErrConflict, "there is no such file"}
	}
	return content, m, err
}

// editable refuses files whose replacement would reach further than their name, or ignore a permission.
func editable(m meta) error {
	switch {
	case m.nlink != 1:
		return &refusal{ErrHardLink, fmt.Sprintf("the file has %d names", m.nlink)}
	case m.perm&permSpecial != 0:
		return &refusal{ErrMode, fmt.Sprintf("mode %04o has a special bit", m.perm)}
	case m.perm&permOwnerWrite == 0:
		return &refusal{ErrMode, fmt.Sprintf("mode %04o: its owner may not write it", m.perm)}
	}
	return nil
}
