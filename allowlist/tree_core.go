// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ownPaths finds what the guard itself consists of and lies inside the tree: the running executable, the resolved git
// directory, and what the host names. The result is decided once, when the tree is opened, from names that the operator
// or git gave, never from an edit.
func ownPaths(name string, host []string) (core []Rule, gitDirs []string, err error) {
	root, err := filepath.Abs(name)
	if err != nil {
		return nil, nil, err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, nil, err
	}
	if exe, err := os.Executable(); err == nil { // without a name there is nothing to protect
		core = appendCore(core, root, exe, "running executable")
	}
	for _, path := range host {
		core = appendCore(core, root, path, "named by the host")
	}
	dirs, err := gitDirectories(root)
	if err != nil {
		return nil, nil, err
	}
	for _, path := range dirs {
		core = appendCore(core, root, path, "git directory")
		if rel, ok := inside(root, resolved(path)); ok {
			gitDirs = append(gitDirs, rel)
		}
	}
	return core, gitDirs, nil
}

// appendCore adds the name as given and, where links lead elsewhere, what it resolves to.
func appendCore(core []Rule, root, path, what string) []Rule {
	abs, err := filepath.Abs(path)
	if err != nil {
		return core
	}
	for _, candidate := range []string{withResolvedParent(abs), resolved(abs)} {
		if rel, ok := inside(root, candidate); ok {
			core = append(core, Rule{Pattern: rel, Class: "core", Source: "guard", Reason: what})
		}
	}
	return core
}

// resolved follows all links. What does not exist yet is protected by the name that it has.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return withResolvedParent(path)
}

func withResolvedParent(path string) string {
	if parent, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(parent, filepath.Base(path))
	}
	return path
}

// inside returns the path from the root, with slashes, if it lies below.
func inside(root, path string) (string, bool) {
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// gitDirectories returns the git directory that belongs to a work tree, and the common one if it is linked.
func gitDirectories(root string) ([]string, error) {
	dotGit := filepath.Join(root, ".git")
	info, err := os.Stat(dotGit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	gitDir := dotGit
	if !info.IsDir() {
		// A linked work tree or a submodule: one line that says where the git directory is.
		if gitDir, err = gitPointer(dotGit, "gitdir: ", root); err != nil {
			return nil, err
		}
	}
	common, err := gitPointer(filepath.Join(gitDir, "commondir"), "", gitDir)
	if errors.Is(err, fs.ErrNotExist) {
		return []string{gitDir}, nil
	}
	if err != nil {
		return nil, err
	}
	return []string{gitDir, common}, nil
}

// gitPointer reads a file of one line that names a path, relative to base.
func gitPointer(file, prefix, base string) (string, error) {
	const limit = 8 << 10 // a path and some room
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return "", fmt.Errorf("%+q is not a pointer of git", file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	path, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), prefix)
	if !ok || path == "" || strings.ContainsAny(path, "\n\x00") {
		return "", fmt.Errorf("%+q is not a pointer of git", file)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return filepath.Clean(path), nil
}
