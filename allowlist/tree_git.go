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
	"syscall"
)

// errNoPointer means that git does not take a file for a pointer to a git directory either.
var errNoPointer = errors.New("it is not a pointer of git")

// ownGit core-protects the git directories that an entry named .git leads to, so far as they lie inside the tree. Only
// what looks like a git directory is one for the walk. The root's must be one, or be absent: a pointer to sources is a
// mistake or a trick. A nested one has no such duty, because fixtures of tests hold all sorts; its target is protected.
func (t *Tree) ownGit(dotGit string, nested bool) error {
	dirs, err := gitDirectories(dotGit)
	if nested && errors.Is(err, errNoPointer) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%+q: %w", dotGit, err)
	}
	for _, path := range dirs {
		if err := t.ownGitDir(dotGit, path, dirs[len(dirs)-1], nested); err != nil {
			return fmt.Errorf("%+q: %w", dotGit, err)
		}
	}
	return nil
}

func (t *Tree) ownGitDir(dotGit, path, common string, nested bool) error {
	real, err := resolved(path)
	if err != nil {
		return err
	}
	if real == t.path {
		return errors.New("it makes the whole tree a git directory")
	}
	rel, ok := inside(t.path, real)
	if ok && slices.Contains(strings.Split(foldKey(rel), "/"), ".git") {
		return nil // a default rule that no policy can lift protects it, and a walk knows it by its name
	}
	// The name as given too: a link on the way that lies in the tree must not be turned elsewhere.
	for _, name := range []string{path, real} {
		if t.core, err = appendCore(t.core, t.path, name, reasonGit); err != nil {
			return err
		}
	}
	if !ok || slices.Contains(t.gitDirs, rel) {
		return nil
	}
	looks, err := looksLikeGit(real, common)
	switch {
	case err != nil:
		return err
	case looks:
		t.gitDirs = append(t.gitDirs, rel)
	case !nested:
		return fmt.Errorf("it names %+q, which is not a git directory: it lacks HEAD or objects", path)
	}
	return nil
}

// looksLikeGit tells whether a directory is one that git would take: it has HEAD, and objects lie in it or in the
// directory that linked work trees share. One that does not exist may become one.
func looksLikeGit(dir, common string) (bool, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return false, ignoreAbsent(err)
	}
	for _, place := range []string{dir, common} {
		if info, err := os.Stat(filepath.Join(place, "objects")); err == nil && info.IsDir() {
			return true, nil
		} else if err := ignoreAbsent(err); err != nil {
			return false, err
		}
	}
	return false, nil
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// gitDirectories returns the git directory that an entry named .git is or leads to, and then the common one if it is
// linked. Without such an entry there is none; a link to nothing leads to one that may be made later.
func gitDirectories(dotGit string) ([]string, error) {
	gitDir, err := resolved(dotGit)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(gitDir)
	if errors.Is(err, fs.ErrNotExist) {
		if gitDir == dotGit {
			return nil, nil
		}
		return []string{gitDir}, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		// A linked work tree or a submodule: one line that says where the git directory is.
		if gitDir, err = gitPointer(gitDir, "gitdir: ", filepath.Dir(gitDir)); err != nil {
			return nil, err
		}
	}
	real, err := resolved(gitDir)
	if err != nil {
		return nil, err
	}
	common, err := gitPointer(filepath.Join(real, "commondir"), "", real)
	if err != nil {
		return []string{gitDir}, ignoreAbsent(err)
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
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%+q: %w", file, errNoPointer)
	}
	if info.Size() > limit {
		return "", fmt.Errorf("%+q is too long for a pointer of git", file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	path, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), prefix)
	if !ok || path == "" {
		return "", fmt.Errorf("%+q: %w", file, errNoPointer)
	}
	if strings.ContainsAny(path, "\n\x00") { // git would read some path from it, and we another one
		return "", fmt.Errorf("%+q is an ambiguous pointer of git", file)
	}
	if !filepath.IsAbs(path) {
		// Not cleaned: what precedes ".." may be a link.
		path = base + string(filepath.Separator) + path
	}
	return path, nil
}
