// SPDX-License-Identifier: Apache-2.0

package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/scratch"
)

// copyWorkspace leaves stand-ins where something hidden is.
func (r *run) copyWorkspace(ctx context.Context) error {
	o := r.CopyOptions()
	o.Covered = r.Spec.Hidden
	return r.CopyWorkspace(ctx, o)
}

// protect finds out what must be mounted in the workspace. No payload runs yet, so what it sees stays true.
func (r *run) protect(context.Context) error {
	root, err := unix.Open(r.Workspace(), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: r.Workspace(), Err: err}
	}
	defer unix.Close(root)
	var rules []rule
	// What is hidden comes first: its stand-ins are closed to us too, and what lies below is hidden anyway.
	for _, set := range []struct {
		paths []string
		kind  kind
	}{{r.Spec.Hidden, hidden}, {r.Spec.ReadOnly, readOnly}} {
		for _, p := range set.paths {
			if p = path.Clean(p); r.hides(p) {
				continue
			}
			dir, err := r.lookInside(root, p)
			switch {
			case err == nil && (set.kind == hidden || !r.isMount(p)):
				rules = append(rules, rule{path: p, kind: set.kind, dir: dir})
			case err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR):
				return err
			}
		}
	}
	for _, m := range r.mounts {
		rel, ok := m.inWorkspace()
		if !ok || r.hides(rel) {
			continue
		}
		if err := r.mountPoint(root, rel, m.dir); err != nil {
			return fmt.Errorf("mount %s: %w", m.Source, err)
		}
		one := rule{path: rel, kind: declared, dir: m.dir, source: m.Source}
		if m.copied != "" {
			one.kind, one.source = writable, m.copied
			if slices.ContainsFunc(r.Spec.ReadOnly, func(p string) bool { return path.Clean(p) == rel }) {
				one.kind = declared
			}
		}
		rules = append(rules, one)
	}
	r.rules = arrange(rules)
	return nil
}

// hides reports whether a path lies below a hidden one.
func (r *run) hides(p string) bool {
	return slices.ContainsFunc(r.Spec.Hidden, func(h string) bool { h = path.Clean(h); return h != p && within(h, p) })
}

// look reports whether a path of the copy is a directory. The protection of a link, or through one, would hold for the link
// and not for what it names.
func look(root int, p string) (dir bool, err error) {
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	}
	fd, err := unix.Openat2(root, p, &how)
	if errors.Is(err, unix.ELOOP) {
		return false, fmt.Errorf("%q: %w", p, scratch.ErrThroughLink)
	}
	if err != nil {
		return false, &os.PathError{Op: "open", Path: p, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return false, &os.PathError{Op: "stat", Path: p, Err: err}
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return false, fmt.Errorf("%q: %w", p, scratch.ErrThroughLink)
	}
	return st.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

// mountPoint makes a place for a declared mount in the copy: bubblewrap would follow links on its way there.
func (r *run) mountPoint(root int, p string, dir bool) error {
	if parent := path.Dir(p); parent != "." {
		if err := r.mountPoint(root, parent, true); err != nil {
			return err
		}
	}
	isDir, err := look(root, p)
	switch {
	case err == nil && isDir != dir:
		return fmt.Errorf("%q in the workspace is a file where the source is a directory, or the other way round", p)
	case err == nil:
		return nil
	case !errors.Is(err, unix.ENOENT):
		return err
	}
	// Nothing above is a link, and nobody else can write here.
	at := filepath.Join(r.Workspace(), filepath.FromSlash(p))
	if dir {
		err = os.Mkdir(at, 0o755)
	} else {
		err = os.WriteFile(at, nil, 0o644)
	}
	if err == nil && r.UID >= 0 {
		err = os.Lchown(at, r.UID, r.GID)
	}
	return err
}

// workspace binds the copy, and on it what must be mounted there.
func (r *run) workspace(a *args) {
	bind := func(mode, source, target string) { a.add(mode, source, target) }
	rules := r.rules
	if len(rules) > 0 && rules[0].path == "." {
		bind("--ro-bind", r.Workspace(), Workspace)
		rules = rules[1:]
	} else {
		bind("--bind", r.Workspace(), Workspace)
	}
	for i, one := range rules {
		target := path.Join(Workspace, one.path)
		own := filepath.Join(r.Workspace(), filepath.FromSlash(one.path))
		if copied := lastCopy(rules[:i], one.path); copied != nil {
			own = filepath.Join(copied.source, strings.TrimPrefix(one.path, copied.path))
		}
		switch one.kind {
		case pinned:
			bind("--bind", own, target)
		case readOnly:
			bind("--ro-bind", own, target)
		case writable:
			bind("--bind", one.source, target)
		case declared:
			bind("--ro-bind", one.source, target)
		case hidden:
			if one.dir {
				bind("--ro-bind", r.ex.view.hiddenDir(), target)
			} else {
				bind("--ro-bind", r.ex.view.hiddenFile(), target)
			}
		}
	}
}
