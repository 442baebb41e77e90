// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The names of the files in the directory of a FileStore, where Options names no others.
const (
	DefaultKillFile  = "STOP"
	DefaultPauseFile = "PAUSE"
)

// lookout watches the kill file and the pause file. It asks the file system each time, since what was true a moment ago
// does not stop anything.
type lookout struct {
	kill, pause string // "" is none
	dirs        []watched
}

// watched is a directory as it was at Open. If it is replaced, a file that an operator puts there would not be found by
// its old name, or a file that is there would be gone.
type watched struct {
	path string
	was  inode
}

// sight is what the lookout saw.
type sight struct {
	kill  string // why the run has to stop; "" if it need not
	pause string // why it has to wait
	err   error  // what could not be seen; kill says so too
}

// look looks for the files, and whether their directories are still the same. Like lookForFiles, it does not need the
// lock of the run: a file system that hangs must not keep others from stopping.
func (o *lookout) look() (s sight) {
	o.lookForFiles(&s)
	for i := range o.dirs {
		if s.err == nil {
			s.err = o.dirs[i].same()
		}
	}
	s.settle()
	return s
}

// glance looks for the files only. It is for calls that report what is over: the next one that lets something begin or
// go on looks at the directories too, as the watcher does, and each look costs more than the accounting of an
// iteration.
func (o *lookout) glance() (s sight) {
	o.lookForFiles(&s)
	s.settle()
	return s
}

func (o *lookout) lookForFiles(s *sight) {
	if s.present(o.kill) {
		s.kill = fmt.Sprintf("%q is there", o.kill)
	}
	if s.present(o.pause) {
		s.pause = fmt.Sprintf("%q is there", o.pause)
	}
}

// present reports whether a file is there. Any error but one stops the run.
func (s *sight) present(path string) bool {
	if path == "" || s.err != nil {
		return false
	}
	_, err := lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.err = err
	}
	return err == nil
}

// settle makes what could not be seen a reason to stop.
func (s *sight) settle() {
	if s.err != nil && s.kill == "" {
		s.kill = "whether the run may go on cannot be seen"
	}
}

// same is an error unless the directory is the one it was.
func (d *watched) same() error {
	is, err := lstat(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%q is gone: %w", d.path, err)
	case err == nil && is != d.was:
		return fmt.Errorf("%q is another directory than it was", d.path)
	}
	return err
}

// watch adds a file. Its directory must be there, outside the tree, and nobody but the host and root may write to it.
func (o *lookout) watch(file *string, path, tree string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("%w: %q: %w", ErrInvalidOptions, path, err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return fmt.Errorf("%w: %q: its directory must exist: %w", ErrInvalidOptions, path, err)
	}
	if err := outside(tree, dir); err != nil {
		return fmt.Errorf("%q: %w", path, err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	was, err := onlyOurs(dir, info)
	if err != nil {
		return err
	}
	*file = filepath.Join(dir, filepath.Base(abs))
	for _, d := range o.dirs {
		if d.path == dir {
			return nil
		}
	}
	o.dirs = append(o.dirs, watched{dir, was})
	return nil
}

// outside refuses a directory that is the tree or below it, under whatever name. It need not exist yet.
func outside(tree, dir string) error {
	if tree == "" {
		return nil
	}
	root, err := os.Stat(tree)
	if err != nil {
		return fmt.Errorf("%w: Tree: %w", ErrInvalidOptions, err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("%w: %q: %w", ErrInvalidOptions, dir, err)
	}
	real, rest, err := resolve(abs)
	for err == nil {
		info, statErr := os.Stat(real)
		if statErr != nil {
			return fmt.Errorf("%w: %w", ErrUntrusted, statErr)
		}
		if os.SameFile(info, root) {
			return fmt.Errorf("%w: %q lies in the tree %q, where a variant can change it", ErrUntrusted,
				filepath.Join(real, rest), tree)
		}
		up := filepath.Dir(real)
		if up == real {
			return nil
		}
		real, rest = up, filepath.Join(filepath.Base(real), rest)
	}
	return fmt.Errorf("%w: %w", ErrUntrusted, err)
}

// resolve follows all links in the part of a path that exists, and returns the rest.
func resolve(path string) (real, rest string, err error) {
	for {
		real, err = filepath.EvalSymlinks(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return real, rest, err
		}
		if _, statErr := os.Lstat(path); statErr == nil {
			return "", "", err // a link to nowhere: it may lead anywhere later
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
}
