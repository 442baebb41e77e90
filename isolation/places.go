// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/executor"
)

// locate finds the tree and refuses a guard that lies where variants write, or that a run could see.
func (b *Boundary) locate() error {
	if err := b.c.Tree.Lend(func(dir string) error { b.dir = dir; return nil }); err != nil {
		return problem("Tree: %w", err)
	}
	state, err := filepath.Abs(b.c.StateDir)
	if err != nil {
		return problem("StateDir: %w", err)
	}
	if b.c.StateDir, err = resolved(state); err != nil {
		return problem("StateDir: %w", err)
	}
	var all *multierror.Error
	if within(b.dir, b.c.StateDir) || within(b.c.StateDir, b.dir) {
		all = multierror.Append(all, problem("StateDir %q lies in the tree, or the tree in it: name another directory",
			b.c.StateDir))
	}
	if err := b.c.Governor.Outside(b.dir); err != nil {
		all = multierror.Append(all, problem("Governor: %w", err))
	}
	if w := b.c.Run.Workspace; w != "" && !b.isTree(w) {
		all = multierror.Append(all, problem("Run.Workspace %q is not the tree: leave it empty", w))
	}
	all = multierror.Append(all, b.checkGuard()...)
	all = multierror.Append(all, b.checkMounts()...)
	return all.ErrorOrNil()
}

// checkGuard refuses a policy file or a running program on the mutable surface. Package allowlist protects both where
// they lie in the tree; this says so before anybody relies on it.
func (b *Boundary) checkGuard() (all []error) {
	guard := map[string]string{"the policy file": b.c.Edits.File()}
	if exe, err := os.Executable(); err == nil {
		guard["the running program"] = exe
	}
	for _, what := range slices.Sorted(maps.Keys(guard)) {
		path := guard[what]
		if path == "" {
			continue
		}
		real, err := resolved(path)
		if err != nil {
			all = append(all, problem("%s %q: %w", what, path, err))
			continue
		}
		if rel, ok := relative(b.dir, real); ok && b.mutable(rel) {
			all = append(all, problem("%s %q lies on the mutable surface: move it out of the tree", what, path))
		}
	}
	return all
}

// mutable tells whether the policy by itself would let a variant change the path.
func (b *Boundary) mutable(rel string) bool {
	for _, op := range []allowlist.Op{allowlist.Create, allowlist.Modify, allowlist.Delete} {
		if b.c.Edits.Explain(op, rel).Allowed {
			return true
		}
	}
	return false
}

// checkMounts refuses to show a run the tree itself, or what guards it.
func (b *Boundary) checkMounts() (all []error) {
	for _, m := range b.c.Run.Mounts {
		real, err := resolved(m.Source)
		if err != nil {
			all = append(all, problem("Run.Mounts: %w", err))
			continue
		}
		for what, dir := range map[string]string{"the tree": b.dir, "StateDir": b.c.StateDir, "the store": b.c.Store.Dir()} {
			if within(dir, real) || within(real, dir) {
				all = append(all, problem("Run.Mounts shows %s through %q: a run gets copies only", what, m.Source))
			}
		}
		if err := b.c.Governor.Outside(real); err != nil {
			all = append(all, problem("Run.Mounts shows the governor's state through %q: %w", m.Source, err))
		}
	}
	return all
}

func (b *Boundary) isTree(dir string) bool {
	a, err := os.Stat(dir)
	if err != nil {
		return false
	}
	tree, err := os.Stat(b.dir)
	return err == nil && os.SameFile(a, tree)
}

// resolved follows links as far as the path exists; what does not exist yet keeps its name.
func resolved(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("%q is a link that leads nowhere", path)
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path, nil
	}
	if parent, err = resolved(parent); err != nil {
		return "", err
	}
	return filepath.Join(parent, filepath.Base(path)), nil
}

// within tells whether path is dir or lies in it; both are absolute and free of links. Paths that cannot be compared
// do.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err != nil || filepath.IsLocal(rel)
}

// relative returns the path from the tree's root, with slashes.
func relative(dir, path string) (string, bool) {
	rel, err := filepath.Rel(dir, path)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// hidden tells whether no run sees the path in any case.
func hidden(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if slices.Contains(executor.DefaultHidden(), part) {
			return true
		}
	}
	return false
}

// ownSpec copies what the caller could still change.
func ownSpec(s executor.Spec) executor.Spec {
	s.Args, s.Env = slices.Clone(s.Args), maps.Clone(s.Env)
	s.Mounts, s.ReadOnly, s.Hidden = slices.Clone(s.Mounts), slices.Clone(s.ReadOnly), slices.Clone(s.Hidden)
	s.Artifacts = slices.Clone(s.Artifacts)
	return s
}
