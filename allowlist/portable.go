// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"
)

// rootDir is a directory held by an os.Root. It is slower than openat2 (several calls for each component), and its
// exchange is not a compare-and-swap: between the look at a file and the rename over it another process can change it.
// Links are refused as strictly, because each component is opened and then compared with what Lstat saw.
type rootDir struct {
	root *os.Root
	dev  uint64 // of the tree: another one is a mount point. A bind mount of the same file system is not noticed
	top  bool   // borrowed from the Tree, which closes it
}

func openPortable(root *os.Root) (dir, error) {
	d := &rootDir{root: root, top: true}
	m, err := d.self()
	if err != nil {
		return nil, err
	}
	d.dev = m.dev
	return d, nil
}

func (d *rootDir) open(path string) (dir, error) {
	if path == "." {
		return d.step(".")
	}
	var at dir = d
	for name := range strings.SplitSeq(path, "/") {
		next, err := at.(*rootDir).step(name)
		if at != dir(d) {
			err = errors.Join(err, at.close())
		}
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// step opens one component. os.Root follows links that stay inside the root, so what was opened must be what Lstat saw.
func (d *rootDir) step(name string) (dir, error) {
	before, err := d.lstat(name)
	if err != nil {
		return nil, err
	}
	if err := refuseKind(name, before.kind, kindDir); err != nil {
		return nil, err
	}
	root, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	next := &rootDir{root: root, dev: d.dev}
	after, err := next.self()
	if err == nil && !after.same(before) {
		err = &refusal{ErrSymlink, "a directory was exchanged while it was opened"}
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return next, nil
}

func (d *rootDir) close() error {
	if d.top {
		return nil
	}
	return d.root.Close()
}

func (d *rootDir) self() (meta, error) {
	info, err := d.root.Stat(".")
	if err != nil {
		return meta{}, err
	}
	return metaOfInfo(info)
}

func (d *rootDir) lstat(name string) (meta, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return meta{}, err
	}
	m, err := metaOfInfo(info)
	if err == nil && m.kind != kindLink && m.dev != d.dev {
		m.kind = kindMount
	}
	return m, err
}

func (d *rootDir) openFile(name string) (*os.File, meta, error) {
	before, err := d.lstat(name)
	if err != nil {
		return nil, meta{}, err
	}
	if err := refuseKind(name, before.kind, kindFile); err != nil {
		return nil, before, err
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, meta{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, meta{}, errors.Join(err, f.Close())
	}
	m, err := metaOfInfo(info)
	if err == nil && !m.same(before) {
		err = &refusal{ErrConflict, "the file was exchanged while it was opened"}
	}
	if err != nil {
		return nil, m, errors.Join(err, f.Close())
	}
	return f, m, nil
}

func (d *rootDir) digest(name string) (_ Digest, _ meta, err error) {
	f, m, err := d.openFile(name)
	if err != nil {
		return Digest{}, m, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum, err := sumFile(f, m.size)
	return sum, m, err
}

func (d *rootDir) list() ([]entry, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, len(found))
	for i, e := range found {
		entries[i] = entry{e.Name(), kindOfInfo(e.Type())}
	}
	return entries, nil
}

func (d *rootDir) listOnce() ([]entry, error) { return d.list() }

func (d *rootDir) createFile(name string) (*os.File, error) {
	return d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // O_EXCL never follows a link
}

func (d *rootDir) exchange(a, b string) error {
	return exchangeByLink(a, b, d.root.Link, d.root.Rename, d.remove)
}

func (d *rootDir) place(from, to string) error { return placeByLink(from, to, d.root.Link, d.remove) }

func (d *rootDir) readlink(name string) (string, error) { return d.root.Readlink(name) }
func (d *rootDir) mkdir(name string) error              { return d.root.Mkdir(name, 0o755) }
func (d *rootDir) remove(name string) error             { return d.root.Remove(name) }
func (d *rootDir) rmdir(name string) error              { return d.root.Remove(name) } // remove tells by itself
func (d *rootDir) chmod(perm uint32) error              { return d.root.Chmod(".", fs.FileMode(perm)) }

func (d *rootDir) setTime(name string, mtime int64) error {
	return d.root.Chtimes(name, time.Time{}, time.Unix(0, mtime))
}

func (d *rootDir) sync() error {
	f, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
