// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// tempPrefix starts the names that are reserved for staged files.
const tempPrefix = ".al-"

// tempName is unpredictable, so that nobody can be there first.
func tempName() string {
	var b [8]byte
	rand.Read(b[:])
	return tempPrefix + hex.EncodeToString(b[:])
}

func isTempName(name string) bool {
	digits, ok := strings.CutPrefix(name, tempPrefix)
	return ok && len(digits) == 16 && strings.Trim(digits, "0123456789abcdef") == ""
}

// sweep removes staged files that a killed process left behind.
func (t *Tree) sweep() error {
	root, err := t.openDir("")
	if err != nil {
		return err
	}
	return errors.Join(t.sweepDir(root, ""), root.close())
}

// sweepDir walks by handle, so that a planted link cannot lead it out. It skips what it may not enter: nothing was
// staged there either. Git directories are protected, so nothing was staged in them; where nested ones lead is noted.
func (t *Tree) sweepDir(d dir, path string) error {
	entries, err := d.list()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.kind == kindUnknown {
			m, err := d.lstat(e.name)
			if err != nil {
				continue // gone meanwhile
			}
			e.kind = m.kind
		}
		switch {
		case e.kind == kindFile && isTempName(e.name):
			err = sweepFile(d, e.name, entries)
		case foldKey(e.name) == ".git":
			if path != "" || e.name != ".git" { // the root's own was judged before
				err = t.ownGit(filepath.Join(t.path, filepath.FromSlash(path), e.name), true)
			}
		case e.kind == kindDir:
			err = t.sweepBelow(d, path, e.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *Tree) sweepBelow(d dir, path, name string) error {
	child, err := d.open(name)
	if _, refused := asRefusal(err); refused || isAbsent(err) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(t.sweepDir(child, join(path, name)), child.close())
}

// sweepFile removes a leftover: a regular file with one link, or the second name that a portable exchange left of a
// file in the same directory.
func sweepFile(d dir, name string, entries []entry) error {
	m, err := d.lstat(name)
	if err != nil || m.kind != kindFile {
		return nil
	}
	if m.nlink != 1 && !(m.nlink == 2 && hasTwin(d, name, m, entries)) {
		return nil
	}
	if err := d.remove(name); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

func hasTwin(d dir, name string, m meta, entries []entry) bool {
	for _, e := range entries {
		if e.name == name {
			continue
		}
		if other, err := d.lstat(e.name); err == nil && other.same(m) {
			return true
		}
	}
	return false
}
