// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// reasonGit is the Rule.Reason of git directories.
const reasonGit = "git directory"

// ownPaths finds what the guard itself consists of and lies inside the tree: the running executable, what the host
// names, and the git directory of the root. Those of nested work trees follow when the tree is swept. The result is
// decided once, when the tree is opened, from names that the operator or git gave, never from an edit.
func (t *Tree) ownPaths() (err error) {
	if exe, err := os.Executable(); err == nil { // without a name there is nothing to protect
		core, err := appendCore(t.core, t.path, exe, "running executable")
		// Who dropped privileges may be unable to look it up. The kernel's name has no links, so the name is enough.
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		t.core = core
	}
	for _, path := range t.opts.Core {
		if t.core, err = appendCore(t.core, t.path, path, "named by the host"); err != nil {
			return fmt.Errorf("core path %+q: %w", path, err)
		}
	}
	return t.ownGit(filepath.Join(t.path, ".git"), false)
}

// appendCore adds the name as given and, where links lead elsewhere, what it resolves to. On error the name as given is
// added nevertheless.
func appendCore(core []Rule, root, path, what string) ([]Rule, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return core, err
	}
	add := func(candidate string) {
		rel, ok := inside(root, candidate)
		rule := Rule{Pattern: rel, Class: "core", Source: "guard", Reason: what}
		if ok && !slices.Contains(core, rule) {
			core = append(core, rule)
		}
	}
	add(abs)
	parent, err := resolved(filepath.Dir(abs))
	if err != nil {
		return core, err
	}
	add(filepath.Join(parent, filepath.Base(abs)))
	real, err := resolved(abs)
	if err != nil {
		return core, err
	}
	add(real)
	return core, nil
}

// maxLinks is how many links a name may lead through, as in the kernel.
const maxLinks = 40

// resolved follows all links of an absolute path. What does not exist yet keeps the name that it has below the deepest
// ancestor that exists, also where a link leads to nothing: it protects what may be made there later.
func resolved(path string) (string, error) {
	const separator = string(filepath.Separator)
	top := filepath.VolumeName(path) + separator
	real, todo, links := top, strings.Split(path[len(top):], separator), 0
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		real = filepath.Join(real, name) // an empty name and ".." do what they should: real has no links
		info, err := os.Lstat(real)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		if info.Mode().Type() != fs.ModeSymlink {
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%+q leads through more than %d links", path, maxLinks)
		}
		target, err := os.Readlink(real)
		if err != nil {
			return "", err
		}
		real = filepath.Dir(real)
		if filepath.IsAbs(target) {
			real = top
		}
		todo = append(strings.Split(target, separator), todo...)
	}
	return real, nil
}

// inside returns the path from the root, with slashes, if it lies below.
func inside(root, path string) (string, bool) {
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}
