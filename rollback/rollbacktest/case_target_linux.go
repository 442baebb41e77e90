// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback"
)

// targetCases are about the directories that a store must not touch. A checkpoint is what tries the system's: it only
// reads, within small limits and a short time. A restore is tried only where a breach would hurt nothing but the case.
func targetCases() []Case {
	return []Case{
		newCase("T1", "system-directories", 0, "a path that is spelt otherwise, or reached through a link, is not recognised",
			systemDirectories),
		newCase("T1b", "own-places", 0, "the home, the working directory's parents or a repository's .git can be overwritten",
			ownPlaces),
		newCase("T2", "identity", 0, "a tree is known by its path or its content alone", identity),
		newCase("T2b", "named-roots", 0, "a second tree is filled over what it holds", namedRoots),
		newCase("T3", "store-and-tree", 0, "the store captures or overwrites itself", storeAndTree),
		newCase("T4", "nested-trees", 0, "two trees of a store overlap, and each restore undoes the other's", nestedTrees),
		newCase("T5", "unknown-id", 0, "another checkpoint is restored in place of one that is missing", unknownID),
	}
}

// probe tries to checkpoint a directory that must be refused.
func (s *scene) probe(sub Subject, path string) {
	ctx, cancel := context.WithTimeout(s.ctx, 5*time.Second)
	defer cancel()
	_, err := sub.Checkpoint(ctx, path, rollback.Meta{})
	if unix.Access(path, unix.R_OK|unix.X_OK) != nil {
		s.want(err != nil, "checkpoint of %s, which cannot even be read: no error", path)
		return
	}
	s.refused("checkpoint of "+path, err, rollback.ErrTarget)
	target, ok := errors.AsType[*rollback.TargetError](err)
	s.want(ok && target.Path != "" && target.Reason != "", "%s: %v is no *TargetError with path and reason", path, err)
}

// guarded opens a store that could not read much even if it wanted to.
func (s *scene) guarded() Subject {
	s.opt.Limits = rollback.Limits{Files: 50, Bytes: 1 << 20, FileSize: 1 << 20, Depth: 3}
	return s.subject()
}

func systemDirectories(s *scene) {
	sub := s.guarded()
	paths := []string{"/", "/usr", "/etc", "/var", "/dev", "/proc", "/proc/self", "/sys", "/bin", "/lib", "/run",
		"/home", "/root",
		"/opt", "/srv", "/mnt", "/tmp", "//", "/usr/", "/usr/.", "/usr/../usr", "/etc/../usr", "/proc/self/root",
		os.TempDir()}
	// A climb to the top from inside the case, and the same through a link.
	climb := s.tree
	for dir := s.tree; dir != "/"; dir = filepath.Dir(dir) {
		climb += "/.."
	}
	paths = append(paths, climb, climb+"/usr", climb+"/etc/.")
	s.must(os.Symlink("/usr", s.dir+"/to-usr"), os.Symlink("/", s.dir+"/to-root"), os.Symlink("to-usr", s.dir+"/to-link"))
	paths = append(paths, s.dir+"/to-usr", s.dir+"/to-root", s.dir+"/to-root/etc", s.dir+"/to-link", s.dir+"/to-usr/.")
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			s.probe(sub, path)
		}
	}
	if u, err := user.Current(); err == nil {
		if _, err := os.Stat(u.HomeDir); err == nil && u.HomeDir != "" {
			s.probe(sub, u.HomeDir)
		}
	}
}

func ownPlaces(s *scene) {
	home := s.dir + "/a home"
	s.must(os.Mkdir(home, 0o755), os.Symlink("a home", s.dir+"/home-link"))
	s.file("f", "f").file("sub/deep/x", "x").file("repo/.git/HEAD", "ref").file("repo/.git/hooks/h", "h").link("to-sub",
		"sub")
	defer setHome(home)()
	for _, here := range []string{s.dir, s.path("sub/deep"), "/"} {
		func() {
			defer s.enter(here)()
			sub := s.guarded()
			for _, path := range []string{home, home + "/", s.dir + "/home-link", s.path("repo/.git"),
				s.path("repo/.git/hooks"), s.path("to-sub"), s.path("to-sub/deep"), s.dir, s.dir + "/tree/..", s.store()} {
				s.probe(sub, path)
			}
			if here == s.path("sub/deep") {
				s.probe(sub, s.path("sub")) // a parent of the working directory
				s.probe(sub, s.tree)
			}
		}()
	}
	sub := s.subject()
	s.probe(sub, s.path("f")) // no directory
	_, err := sub.Checkpoint(s.ctx, s.path("nothing"), rollback.Meta{})
	s.want(err != nil, "checkpoint of a directory that does not exist: no error")
	s.checkpoint(sub)
}

// setHome sets the variable of the whole process and returns what puts it back.
func setHome(dir string) func() {
	old, had := os.LookupEnv("HOME")
	_ = os.Setenv("HOME", dir)
	return func() {
		if _ = os.Unsetenv("HOME"); had {
			_ = os.Setenv("HOME", old)
		}
	}
}

// enter changes the working directory of the whole process and returns what puts it back.
func (s *scene) enter(dir string) func() {
	old, err := os.Getwd()
	s.must(err, s.err, os.Chdir(dir))
	return func() { _ = os.Chdir(old) } // the next case that needs it notices
}

func identity(s *scene) {
	s.file("f", "content")
	sub := s.subject()
	c := s.checkpoint(sub)
	copied := s.dir + "/copy"
	s.must(os.Mkdir(copied, 0o755), os.WriteFile(copied+"/f", []byte("content"), 0o644),
		os.WriteFile(copied+"/mine", nil, 0o644))
	s.must(os.Rename(s.tree, s.dir+"/moved"), os.Mkdir(s.tree, 0o755))
	s.file("f", "content").file("precious", "never captured")
	for _, sub := range []Subject{sub, s.subject()} {
		for _, path := range []string{s.tree, copied, s.dir + "/moved"} {
			before := s.lookAt(path)
			_, err := sub.Restore(s.ctx, c.ID, path)
			s.refused("restore into "+path+", which is not the tree", err, rollback.ErrTarget)
			s.untouched("a refused directory", before, s.lookAt(path))
		}
	}
	s.must(removeAll(s.tree), os.Rename(s.dir+"/moved", s.tree))
	s.file("f", "changed")
	s.restore(s.again(), c.ID)
	s.holds("f", "content")
}

func namedRoots(s *scene) {
	full, empty := s.dir+"/full", s.dir+"/empty"
	s.must(os.Mkdir(full, 0o755), os.Mkdir(empty, 0o755), os.WriteFile(full+"/precious", nil, 0o644))
	s.opt.Roots = []string{full, empty}
	s.file("d/f", "content")
	sub := s.subject()
	want, c := s.look(), s.checkpoint(sub)
	before := s.lookAt(full)
	_, err := sub.Restore(s.ctx, c.ID, full)
	s.refused("restore into a named root that is not empty", err, rollback.ErrTarget)
	s.untouched("a refused directory", before, s.lookAt(full))
	_, err = sub.Restore(s.ctx, c.ID, empty)
	s.want(err == nil, "restore into an empty named root: %v", err)
	s.same("the second tree", want, s.lookAt(empty))
	s.must(os.WriteFile(empty+"/d/f", []byte("changed"), 0o644))
	_, err = sub.Restore(s.ctx, c.ID, empty)
	s.want(err == nil, "second restore into a named root: %v", err)
	s.same("the second tree", want, s.lookAt(empty))
}

func storeAndTree(s *scene) {
	s.file("f", "f")
	s.must(s.err)
	for name, dir := range map[string]string{"the tree itself": s.tree, "inside the tree": s.path("deep/store")} {
		o := s.opt
		sub, err := s.open(dir, &o)
		if err != nil {
			continue // refused at once, because the directory is not empty
		}
		s.subs = append(s.subs, sub)
		_, err = sub.Checkpoint(s.ctx, s.tree, rollback.Meta{})
		s.refused("a store in "+name, err, rollback.ErrTarget)
		s.close()
	}
	sub := s.guarded()
	inside := s.store() + "/inside"
	s.must(os.MkdirAll(inside, 0o755))
	s.probe(sub, inside)
	s.probe(sub, s.store())
	s.must(os.Remove(inside))
}

func nestedTrees(s *scene) {
	s.file("a/b/f", "f").file("c", "c")
	sub := s.subject()
	s.must(s.err)
	_, err := sub.Checkpoint(s.ctx, s.path("a"), rollback.Meta{})
	s.want(err == nil, "checkpoint: %v", err)
	for _, path := range []string{s.tree, s.path("a/b")} {
		_, err := sub.Checkpoint(s.ctx, path, rollback.Meta{})
		s.refused(fmt.Sprintf("%s beside the tree %s", path, s.path("a")), err, rollback.ErrTarget)
	}
}

func unknownID(s *scene) {
	s.file("f", "one")
	sub := s.subject()
	c := s.checkpoint(sub)
	s.file("f", "two")
	before := s.look()
	wrong := c.ID
	wrong[31] ^= 1
	for _, id := range []rollback.ID{wrong, {}, {1}} {
		_, err := sub.Restore(s.ctx, id, s.tree)
		s.refused("restore of an unknown ID", err, rollback.ErrNotFound)
		s.untouched("the tree after it", before, s.look())
	}
}
