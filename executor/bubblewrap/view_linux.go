// SPDX-License-Identifier: Apache-2.0

package bubblewrap

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor/internal/hostrun"
)

// etcFiles stand in for the host's. Names are looked up in files only, so that a lookup of a host name fails at once.
func etcFiles() map[string]string {
	user, uid, gid := Hostname, strconv.Itoa(UID), strconv.Itoa(GID)
	return map[string]string{
		"passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\n" +
			user + ":x:" + uid + ":" + gid + "::" + Home + ":/bin/sh\n" +
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"group": "root:x:0:\n" + user + ":x:" + gid + ":\nnogroup:x:65534:\n",
		"hosts": "127.0.0.1 localhost " + Hostname + "\n::1 localhost " + Hostname + "\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\nnetworks: files\nprotocols: files\n" +
			"services: files\n",
		"hostname": Hostname + "\n",
	}
}

// read is something of the host that every run sees.
type read struct {
	path string
	link string // the target, if it is a symbolic link
	dir  bool
}

// findReads looks at what every run shall see.
func findReads(c Config) ([]read, error) {
	paths, optional := c.Reads, false
	if paths == nil {
		paths, optional = DefaultReads(), true
	}
	var list []read
	for _, path := range paths {
		fi, err := os.Lstat(path)
		if optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		switch {
		case err != nil:
			return nil, err
		case !filepath.IsAbs(path) || filepath.Clean(path) != path:
			return nil, fmt.Errorf("%q is not a clean absolute path", path)
		case taken(path) != "":
			return nil, fmt.Errorf("%q %s", path, taken(path))
		}
		one := read{path: path, dir: fi.IsDir()}
		if fi.Mode().Type() == fs.ModeSymlink {
			if one.link, err = os.Readlink(path); err != nil {
				return nil, err
			}
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b read) int { return strings.Compare(a.path, b.path) }) // what is above comes first
	return list, nil
}

// view is a directory of the host with what stands in for the host's own files. It stays, and is shared by every executor
// with the same configuration.
type view struct {
	dir   string
	reads []read
}

func (v view) etc() string        { return filepath.Join(v.dir, "etc") }
func (v view) hiddenFile() string { return filepath.Join(v.dir, "hidden-file") }
func (v view) hiddenDir() string  { return filepath.Join(v.dir, "hidden-directory") }

// openView makes the directory, or finds it. Its name says what is in it, and it appears complete or not at all.
func openView(state string, reads []read) (view, error) {
	etc, hash := etcFiles(), sha256.New()
	for _, name := range slices.Sorted(maps.Keys(etc)) {
		fmt.Fprintf(hash, "%q %q\n", name, etc[name])
	}
	for _, r := range reads {
		fmt.Fprintf(hash, "%q %q %v\n", r.path, r.link, r.dir)
	}
	v := view{dir: filepath.Join(state, "view-"+hex.EncodeToString(hash.Sum(nil)[:8])), reads: reads}
	return v, v.make(state, etc)
}

// make builds the directory under another name. The lock keeps other executors away, so that what is there under that name
// was left by one that was killed.
func (v view) make(state string, etc map[string]string) error {
	lock, err := os.Open(state)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return &fs.PathError{Op: "flock", Path: state, Err: err}
	}
	if _, err := os.Lstat(v.dir); errors.Is(err, fs.ErrNotExist) {
		made := v.dir + ".new"
		if err := os.RemoveAll(made); err != nil {
			return err
		}
		if err := v.fill(made, etc); err != nil {
			return errors.Join(err, os.RemoveAll(made))
		}
		if err := os.Rename(made, v.dir); err != nil {
			return err
		}
	}
	return hostrun.MakeDir(v.dir) // which checks whose it is
}

// fill writes the files, and makes the places in /etc on which files of the host are bound.
func (v view) fill(dir string, etc map[string]string) error {
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	at := func(rel string) string { return filepath.Join(dir, rel) }
	makeDir := func(path string, mode fs.FileMode) {
		note(os.MkdirAll(path, 0o755))
		note(os.Chmod(path, mode))
	}
	makeFile := func(path, text string, mode fs.FileMode) {
		note(os.WriteFile(path, []byte(text), 0o600))
		note(os.Chmod(path, mode))
	}
	makeDir(dir, 0o711)
	makeDir(at("etc"), 0o755)
	makeDir(at("hidden-directory"), 0)
	makeFile(at("hidden-file"), "", 0)
	for name, text := range etc {
		makeFile(at("etc/"+name), text, 0o644)
	}
	for _, r := range v.reads {
		rel, below := strings.CutPrefix(r.path, "/etc/")
		if !below || etc[rel] != "" {
			continue
		}
		for parent := filepath.Dir(rel); parent != "."; parent = filepath.Dir(parent) {
			makeDir(at("etc/"+parent), 0o755)
		}
		switch {
		case r.link != "":
			note(os.Symlink(r.link, at("etc/"+rel)))
		case r.dir:
			makeDir(at("etc/"+rel), 0o755)
		default:
			makeFile(at("etc/"+rel), "", 0o644)
		}
	}
	return errors.Join(errs...)
}
