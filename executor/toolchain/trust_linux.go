// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

const (
	othersWrite = 0o002
	groupWrite  = 0o020
	othersEnter = 0o001
	othersRead  = 0o004
	// staffGroup may write to /usr/local on Debian, whose policy gives the group nothing but that.
	staffGroup = 50
)

// trusted demands that nobody but root and the caller can change what lies at path: the thing itself, each directory
// above it, and the same for every link on the way.
func trusted(path string) error { return eachAbove(path, ownedByUs) }

// reachable demands that the uid of a run can get to path. An ordinary caller's runs have the caller's own uid; root's
// have one that is nobody's.
func reachable(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return eachAbove(path, func(path string, fi fs.FileInfo) error {
		need := fs.FileMode(othersRead)
		if fi.IsDir() {
			need = othersEnter
		}
		if fi.Mode()&fs.ModeSymlink == 0 && fi.Mode().Perm()&need != need {
			return fmt.Errorf("%s has mode %v, and runs have another uid: it must be reachable for others", path, fi.Mode())
		}
		return nil
	})
}

// eachAbove calls f for path and every directory above it, without following links, and does the same for what a link
// leads to.
func eachAbove(path string, f func(string, fs.FileInfo) error) error {
	const maxLinks = 40 // as the kernel
	for range maxLinks {
		link, err := upTo(path, f)
		if err != nil || link == "" {
			return err
		}
		path = link
	}
	return &fs.PathError{Op: "resolve", Path: path, Err: syscall.ELOOP}
}

// upTo walks from the root down to path. At a link it stops and returns the path with the link replaced by its target.
func upTo(path string, f func(string, fs.FileInfo) error) (link string, err error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%s must be absolute", path)
	}
	var list []string
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		list = append(list, dir)
		if dir == "/" {
			break
		}
	}
	for _, dir := range slices.Backward(list) {
		fi, err := os.Lstat(dir)
		if err != nil {
			return "", err
		}
		if err := f(dir, fi); err != nil {
			return "", err
		}
		if fi.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		target, err := os.Readlink(dir)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(dir), target)
		}
		rest, err := filepath.Rel(dir, path)
		return filepath.Join(target, rest), err
	}
	return "", nil
}

// ownedByUs is for the programs of the host and the way to them.
func ownedByUs(path string, fi fs.FileInfo) error {
	if fi.IsDir() && fi.Mode()&fs.ModeSticky != 0 {
		return owner(path, fi) // nobody can replace there what is not theirs
	}
	return writtenByUs(path, fi)
}

// writtenByUs is for what nobody else may have had a hand in.
func writtenByUs(path string, fi fs.FileInfo) error {
	if err := owner(path, fi); err != nil {
		return err
	}
	group, mode := fi.Sys().(*syscall.Stat_t).Gid, fi.Mode()
	if mode&fs.ModeSymlink != 0 {
		return nil // has no mode of its own
	}
	ourGroup := group == 0 || group == staffGroup || int(group) == os.Getegid()
	if mode.Perm()&othersWrite != 0 || mode.Perm()&groupWrite != 0 && !ourGroup {
		return fmt.Errorf("%s has mode %v and group %d: it must be writable for root and the caller alone", path, mode, group)
	}
	return nil
}

func owner(path string, fi fs.FileInfo) error {
	st := fi.Sys().(*syscall.Stat_t)
	if st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to uid %d: it must belong to root or the caller", path, st.Uid)
	}
	return nil
}

// oursAlone is for what this package makes and what it builds from: no write permission for any other, and nothing but
// files and directories.
func oursAlone(path string, fi fs.FileInfo) error {
	if err := owner(path, fi); err != nil {
		return err
	}
	if !fi.Mode().IsRegular() && !fi.IsDir() {
		return fmt.Errorf("%s is %v: it must be a file or a directory", path, fi.Mode().Type())
	}
	if fi.Mode().Perm()&(othersWrite|groupWrite) != 0 {
		return fmt.Errorf("%s has mode %v: it must not be writable for group or others", path, fi.Mode())
	}
	return nil
}

// trustedTree demands of a source tree that nobody but root and the caller can have written it. Version control
// internals are left out: nothing is built from them. So is where links lead to.
func trustedTree(dir string) error {
	if err := trusted(dir); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		fi, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went away meanwhile
		}
		if err != nil {
			return err
		}
		return writtenByUs(path, fi)
	})
}
