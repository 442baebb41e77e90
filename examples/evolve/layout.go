// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// layout says where everything of one run is. Nothing else is written, and the checkout never is.
type layout struct {
	dir   string // of the run
	seeds string // of the Go toolchain; shared by the runs of one user
}

func (l layout) path(name string) string { return filepath.Join(l.dir, name) }
func (l layout) tree() string            { return l.path("tree") }     // what is evolved
func (l layout) store() string           { return l.path("store") }    // checkpoints
func (l layout) governor() string        { return l.path("runaway") }  // journal of the iterations, kill file
func (l layout) boundary() string        { return l.path("boundary") } // decision log, trusted copies
func (l layout) history() string         { return l.path("history.jsonl") }
func (l layout) search() string          { return l.path("search.json") }
func (l layout) scores() string          { return l.path("scores.json") }
func (l layout) curve() string           { return l.path("curve.svg") }
func (l layout) run() string             { return l.path("run.json") }

// base is the directory for runs that are given none. It is in the temporary directory, which is there for everybody:
// a run of root has a uid of its own, and must reach what it reads.
func base() string {
	return filepath.Join(os.TempDir(), "containment-evolve-"+strconv.Itoa(os.Getuid()))
}

// place finds or makes the directory of the run.
func place(o *options) (layout, error) {
	if o.State != "" {
		dir, err := filepath.Abs(o.State)
		if err != nil {
			return layout{}, err
		}
		l := layout{dir, filepath.Join(dir, "seeds")}
		if filepath.Dir(dir) == base() { // a run that was given no place, and is resumed by the one that it got
			l.seeds = filepath.Join(base(), "seeds")
		}
		return l, l.enter(o.Resume)
	}
	if err := makeOwn(base()); err != nil {
		return layout{}, err
	}
	l := layout{seeds: filepath.Join(base(), "seeds")}
	if o.Resume {
		newest, err := newest(base())
		l.dir = newest
		return l, err
	}
	what := o.Problem
	if o.Tree != "" {
		what = "tree"
	}
	dir, err := os.MkdirTemp(base(), what+"-"+time.Now().UTC().Format("20060102-150405")+"-")
	if err != nil {
		return layout{}, err
	}
	l.dir = dir
	return l, os.Chmod(dir, 0o755)
}

// enter makes the directory of a new run, or finds that of an old one.
func (l layout) enter(resume bool) error {
	_, err := os.Lstat(l.run())
	switch {
	case resume && errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no run in %s; leave out -resume to begin one", l.dir)
	case resume || err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil:
		return fmt.Errorf("%s holds a run; -resume goes on with it", l.dir)
	}
	if err := os.MkdirAll(filepath.Dir(l.dir), 0o755); err != nil {
		return err
	}
	return makeOwn(l.dir)
}

// makeOwn makes a directory that nobody else can write to, or demands that it is one.
func makeOwn(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := fi.Sys().(*syscall.Stat_t)
	if !fi.IsDir() || !ok || int(stat.Uid) != os.Getuid() || fi.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s must be a directory of yours that nobody else can write to; name another with -state", dir)
	}
	return nil
}

// newest finds the run that was begun last.
func newest(base string) (string, error) {
	runs, err := filepath.Glob(filepath.Join(base, "*", "run.json"))
	if err != nil {
		return "", err
	}
	var found string
	var last time.Time
	for _, path := range runs {
		if fi, err := os.Lstat(path); err == nil && fi.ModTime().After(last) {
			found, last = filepath.Dir(path), fi.ModTime()
		}
	}
	if found == "" {
		return "", fmt.Errorf("there is no run in %s to resume; -state names another place", base)
	}
	return found, nil
}

// save replaces a file as a whole, so that whoever reads it after a crash or a power cut finds the old one or the new
// one, and the new one once it has returned.
func save(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func saveJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "\t")
	if err != nil {
		return err
	}
	return save(path, append(data, '\n'))
}

// loadJSON is strict: a field that nobody knows may mean more than is understood.
func loadJSON(path string, into any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	d := json.NewDecoder(f)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
