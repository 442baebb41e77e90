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

// target is where the files go.
type target interface {
	// create begins a file. errBadPlace and the like concern this file only.
	create(p string, executable bool) (output, error)
}

// output is one file on its way. What is not written of it is a hole. It ends with place or drop.
type output interface {
	WriteAt(p []byte, off int64) (int, error)
	Truncate(size int64) error
	place() error // it is complete
	drop() error
}

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

// file is an artifact under its temporary name.
type file struct {
	*os.File
	d       *dest
	temp, p string
}

// create opens a new temporary file for p.
func (d *dest) create(p string, executable bool) (output, error) {
	if err := d.makeDir(path.Dir(p)); err != nil {
		return nil, err
	}
	mode := fs.FileMode(0o600)
	if executable {
		mode = 0o700
	}
	name := temp(d.id) + strings.ToLower(rand.Text())
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	return &file{File: f, d: d, temp: name, p: p}, nil
}

// place gives a complete file its name, in place of an older file or link.
func (f *file) place() error {
	err := f.Close()
	if err == nil {
		err = f.d.root.Rename(f.temp, f.p)
	}
	if err == nil {
		return nil
	}
	if fi, look := f.d.root.Lstat(f.p); look == nil && fi.IsDir() {
		err = fmt.Errorf("%w: %q is a directory", errBadPlace, f.p)
	}
	return errors.Join(err, f.d.root.Remove(f.temp))
}

// drop removes what there is of a file.
func (f *file) drop() error { return errors.Join(f.Close(), f.d.root.Remove(f.temp)) }
