// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// stagedChange is a change with its directory and the name beside the target that its file has meanwhile.
type stagedChange struct {
	*change
	parent *viewDir
	base   string // last component of the path
	temp   string
	ours   meta // of the file that we wrote; zero for Delete
}

// stage judges the tree once more, makes missing directories and writes the new file beside its target. Nothing of it
// is visible under a planned name.
func (x *txn) stage(c *change) error {
	if err := x.step("judge"); err != nil {
		return err
	}
	// The time between Plan and Apply can be long. The judgement is repeated with fresh eyes; the swap decides again.
	if err := x.judgeAgain(c); err != nil {
		return err
	}
	parentPath, base := split(c.Path)
	parent, err := x.parent(parentPath)
	if err != nil {
		return err
	}
	s := &stagedChange{change: c, parent: parent, base: base, temp: tempName()}
	if err := x.touch(parent); err != nil {
		return err
	}
	x.temps[join(parentPath, s.temp)] = true
	if c.Op != Delete {
		if err := x.writeTemp(s); err != nil {
			return err
		}
	}
	x.staged = append(x.staged, s)
	return nil
}

func (x *txn) judgeAgain(c *change) error {
	content, m, err := x.view.target(c.Op, c.Path)
	if err == nil && c.Op != Create {
		err = unchanged(c, content, m)
	}
	return asDenial(c, err)
}

// unchanged tells whether a file is still the one that was judged.
func unchanged(c *change, content []byte, m meta) error {
	if Sum(content) != c.Base {
		return &refusal{ErrConflict, "the file changed since the edit was judged"}
	}
	if m.perm != c.meta.perm {
		return &refusal{ErrConflict, fmt.Sprintf("the mode changed from %04o to %04o since the edit was judged",
			c.meta.perm, m.perm)}
	}
	return nil
}

// asDenial makes a *DeniedError of a verdict, and leaves faults as they are.
func asDenial(c *change, err error) error {
	r, ok := asRefusal(err)
	if !ok {
		return err
	}
	return denied([]Decision{deny(Decision{Op: c.Op, Path: c.Path}, r)})
}

// parent opens the directory of a target, and makes those on the way that are missing, below held handles.
func (x *txn) parent(path string) (*viewDir, error) {
	held, err := x.view.directory("")
	if err != nil || path == "" {
		return held, err
	}
	at := ""
	for name := range strings.SplitSeq(path, "/") {
		next := join(at, name)
		child, err := x.view.directory(next)
		if isAbsent(err) {
			child, err = x.makeDir(held, name)
		}
		if err != nil {
			return nil, err
		}
		held, at = child, next
	}
	return held, nil
}

func (x *txn) makeDir(parent *viewDir, name string) (*viewDir, error) {
	if err := x.step("mkdir"); err != nil {
		return nil, err
	}
	if err := x.touch(parent); err != nil {
		return nil, err
	}
	if err := parent.dir.mkdir(name); err != nil {
		return nil, err
	}
	made, err := parent.dir.lstat(name)
	if err != nil {
		return nil, errors.Join(err, parent.dir.rmdir(name))
	}
	x.undo = append(x.undo, func() error { return removeMade(parent.dir, name, made) })
	child, err := parent.dir.open(name)
	if err != nil {
		return nil, err
	}
	path := join(parent.path, name)
	x.view.add(path, child)
	x.made = append(x.made, madeDir{path, made})
	// Exactly 0755, whatever the umask says.
	return x.view.dirs[path], child.chmod(0o755)
}

// removeMade removes a directory of ours. One that somebody put in its place, or put something into, stays.
func removeMade(parent dir, name string, made meta) error {
	now, err := parent.lstat(name)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !now.same(made) {
		return fmt.Errorf("directory %+q was replaced", name)
	}
	return parent.rmdir(name)
}

func (x *txn) writeTemp(s *stagedChange) error {
	if err := x.step("stage"); err != nil {
		return err
	}
	f, err := s.parent.dir.createFile(s.temp)
	if err != nil {
		return err
	}
	x.undo = append(x.undo, func() error { return removeOurs(s.parent.dir, s.temp, s.ours) })
	info, err := f.Stat()
	if err == nil {
		s.ours, err = metaOfInfo(info)
	}
	if err == nil {
		err = x.fill(f, s.change)
	}
	err = errors.Join(err, f.Close())
	if err == nil && s.restore && s.meta.mtime != 0 {
		if failed := s.parent.dir.setTime(s.temp, s.meta.mtime); failed != nil {
			x.untimed(s.Path, failed)
		}
	}
	return err
}

// fill writes content, owner and permissions, in this order: a change of the owner clears special bits.
func (x *txn) fill(f *os.File, c *change) error {
	if _, err := f.Write(c.Content); err != nil {
		return err
	}
	if (c.Op == Modify || c.restore) && os.Geteuid() == 0 {
		if err := f.Chown(int(c.meta.uid), int(c.meta.gid)); err != nil {
			return err
		}
	}
	if err := f.Chmod(os.FileMode(c.resultPerm())); err != nil {
		return err
	}
	return x.step("filled")
}

// removeOurs removes a staged file, if the name still holds it.
func removeOurs(d dir, name string, ours meta) error {
	now, err := d.lstat(name)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !now.same(ours) {
		return fmt.Errorf("%+q holds a %v that is not ours", name, now.kind)
	}
	return d.remove(name)
}
