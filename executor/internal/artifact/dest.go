// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// errBadPlace: something stands in the destination where the artifact should go. It concerns this artifact only.
var errBadPlace = errors.New("the destination is taken")

// dest is the destination, opened once.
type dest struct {
	root *os.Root
	id   string
	dirs map[string]bool // directories that exist and are none but directories
}

func openDest(name, id string) (*dest, error) {
	if err := os.MkdirAll(name, 0o700); err != nil {
		return nil, fmt.Errorf("artifact: destination: %w", err)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("artifact: destination: %w", err)
	}
	return &dest{root: root, id: id, dirs: map[string]bool{".": true}}, nil
}

func (d *dest) close() { d.root.Close() }

// makeDir makes the directories above an artifact. os.Root keeps us inside but follows links there; an artifact must not
// come to lie under another name, so a link is refused. Nobody hostile writes here: the look is for old mistakes.
func (d *dest) makeDir(dir string) error {
	if d.dirs[dir] {
		return nil
	}
	if err := d.makeDir(path.Dir(dir)); err != nil {
		return err
	}
	err := d.root.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		var fi fs.FileInfo
		if fi, err = d.root.Lstat(dir); err == nil && !fi.IsDir() {
			return fmt.Errorf("%w: %q is not a directory", errBadPlace, dir)
		}
	}
	if err == nil {
		d.dirs[dir] = true
	}
	return err
}

// temp begins the names of a run's files that are not complete yet. They all lie at the top of the destination, where a
// sweep finds them without a search.
func temp(id string) string { return "." + id + "-" }

// RemoveTemps removes what a killed host program left of the run's artifacts in dir. A directory that is not there, or not
// a directory, holds nothing of ours.
func RemoveTemps(dir, id string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	names, err := fs.Glob(root.FS(), temp(id)+"*")
	for _, name := range names {
		if e := root.Remove(name); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("artifact: %s: %w", dir, e))
		}
	}
	return err
}

// create opens a new temporary file for p.
func (d *dest) create(p string, executable bool) (*os.File, string, error) {
	if err := d.makeDir(path.Dir(p)); err != nil {
		return nil, "", err
	}
	mode := fs.FileMode(0o600)
	if executable {
		mode = 0o700
	}
	name := temp(d.id) + strings.ToLower(rand.Text())
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	return f, name, err
}

// place gives a complete file its name, in place of an older file or link.
func (d *dest) place(temp, p string) error {
	err := d.root.Rename(temp, p)
	if err == nil {
		return nil
	}
	if fi, look := d.root.Lstat(p); look == nil && fi.IsDir() {
		return fmt.Errorf("%w: %q is a directory", errBadPlace, p)
	}
	return err
}
