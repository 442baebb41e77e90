// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"errors"
	"fmt"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/rollback/internal/object"
)

// moved reports whether an error says that the tree is no longer what was scanned: a name came, went or changed its
// kind, or a parent did. Such an operation is left alone; the comparison that follows sees what stands there now.
func moved(err error) bool {
	for _, e := range []unix.Errno{
		unix.ENOENT, unix.EEXIST, unix.ENOTDIR, unix.EISDIR, unix.ELOOP, unix.EXDEV, unix.ENOTEMPTY, errChanged,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// errChanged stands for an inode that is not the scanned one.
const errChanged = unix.ESTALE

// apply does what is planned. Each parent is opened again, from the root and without following anything, for each
// operation.
func (r *restorer) apply(p *plan) error {
	for _, o := range p.open {
		if err := r.openUp(o); err != nil {
			return err
		}
	}
	for _, list := range [][]operation{p.remove, p.make, p.put, p.set} {
		for i := range list {
			op := &list[i]
			r.step("apply")
			err := r.perform(op)
			if err != nil && !moved(err) {
				return fmt.Errorf("%q: %w", op.path, err)
			}
		}
	}
	return nil
}

func (r *restorer) perform(op *operation) error {
	if op.do == doAttributes {
		return r.attributes(op)
	}
	dir, name, err := r.parent(op.path)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	switch op.do {
	case doTake:
		err := r.rename("rename", fsys.Place, dir, name, r.staging, strconv.Itoa(op.slot))
		if err == unix.EACCES { // the parent is ours by now, so it is a directory whose own ".." changes
			err = moveClosedDir(dir, name, r.staging, strconv.Itoa(op.slot))
		}
		return err
	case doRemoveDir:
		if err := r.s.try("rmdir"); err != nil {
			return err
		}
		return fsys.Retry(func() error { return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) })
	case doMakeDir:
		if err := r.s.try("mkdir"); err != nil {
			return err
		}
		return fsys.Retry(func() error { return unix.Mkdirat(dir, name, 0o700) })
	}
	return r.put(dir, name, op)
}

// put exchanges what stands at the name for what was staged, or gives the name to it. Which of the two is right is
// decided by the kernel, not by what the scan saw.
func (r *restorer) put(dir int, name string, op *operation) error {
	place := func() error {
		return r.rename("rename", fsys.Place, r.staging, strconv.Itoa(op.slot), dir, name)
	}
	if op.was == nil {
		if err := place(); err != unix.EEXIST {
			return err
		}
	}
	err := r.rename("exchange", fsys.Exchange, r.staging, strconv.Itoa(op.slot), dir, name)
	switch err {
	case unix.ENOENT:
		return place()
	case unix.EINVAL, unix.ENOSYS: // this file system cannot: aside first; the journal covers the gap
		err := r.rename("rename", fsys.Place, dir, name, r.staging, strconv.Itoa(op.slot)+asideSuffix)
		if err != nil && err != unix.ENOENT {
			return err
		}
		r.step("apply-gap")
		return place()
	}
	return err
}

// asideSuffix marks what stood at the name of a slot where two names cannot be exchanged.
const asideSuffix = ".aside"

func (r *restorer) rename(op string, call func(int, string, int, string) error, fromDir int, from string, toDir int,
	to string) error {
	if err := r.s.try(op); err != nil {
		return err
	}
	return call(fromDir, from, toDir, to)
}

// parent opens the directory that an entry is in.
func (r *restorer) parent(p string) (fd int, name string, err error) {
	dir, name := path.Split(p)
	if dir == "" {
		dir = "./"
	}
	fd, err = fsys.OpenBeneath(r.target.fd, dir[:len(dir)-1], unix.O_PATH|unix.O_DIRECTORY, 0)
	return fd, name, err
}

// attributes changes what stands at the path in place. A file or link must still be the inode that was scanned, with as
// many names: another one is not ours to change.
func (r *restorer) attributes(op *operation) error {
	fd, err := fsys.OpenBeneath(r.target.fd, op.path, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	st, err := fsys.Fstat(fd)
	if err != nil {
		return err
	}
	if op.want.Kind == object.Dir {
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return errChanged
		}
	} else if st.Ino != op.was.Stat.Ino || uint32(st.Nlink) != op.was.Stat.Nlink {
		return errChanged
	}
	return r.setAttributes(fd, op)
}

// openUp lets the owner work in a directory.
func (r *restorer) openUp(o opened) error {
	err := r.chmodDir(o.Path, o.Mode|0o700)
	if err != nil && !moved(err) {
		return fmt.Errorf("%q: %w", o.Path, err)
	}
	return nil
}

func (r *restorer) chmodDir(p string, mode uint32) error {
	fd, err := fsys.OpenBeneath(r.target.fd, p, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := r.s.try("chmod"); err != nil {
		return err
	}
	return fsys.ChmodHandle(fd, mode)
}
