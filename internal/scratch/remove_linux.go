// SPDX-License-Identifier: Apache-2.0

package scratch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
)

// deepest is the number of directories held open at one time. A directory further down is first moved to the top of the
// tree: depth then costs neither descriptors nor stack, and no path grows longer than the kernel takes.
const deepest = 64

// Remove removes the tree at path and everything in it, whatever modes, names and depth it has. Nothing there is no error.
// A link at path is removed itself. Nothing outside the tree is touched, and nothing that is mounted below. What cannot be
// removed is named, up to 20 entries; the rest is removed all the same. Remove ends early, with an error, if ctx is done.
//
// Directories without permissions are made accessible, which the caller may do as their owner or as root.
func Remove(ctx context.Context, path string) error {
	path = filepath.Clean(path)
	name := filepath.Base(path)
	if name == "." || name == ".." || name == "/" {
		return fmt.Errorf("scratch: remove %q: %w: the path must end in a name", path, ErrOptions)
	}
	above, err := openat(unix.AT_FDCWD, filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	defer unix.Close(above)
	r := &remover{top: -1}
	if r.entry(ctx, &level{fd: above, depth: -1}, entry{name: name}) {
		return nil
	}
	return fmt.Errorf("%q: %w", path, errors.Join(context.Cause(ctx), r.faults.err()))
}

// remover is one removal.
type remover struct {
	top    int // descriptor of the top of the tree, once it is open
	moved  int // directories brought to the top so far
	faults faults
}

// level is an open directory on the way down; depth 0 is the top of the tree.
type level struct {
	up    *level
	name  string
	fd    int
	depth int
}

// entry removes one entry and reports whether the name is free now.
func (r *remover) entry(ctx context.Context, l *level, e entry) bool {
	if e.typ != unix.S_IFDIR {
		switch err := unix.Unlinkat(l.fd, e.name, 0); err {
		case nil, unix.ENOENT:
			return true
		case unix.EISDIR: // the listing did not know, or is out of date
		default:
			return r.fail(l, e.name, err)
		}
	}
	if l.depth == deepest {
		return r.move(l, e.name)
	}
	fd, err := openBelow(l.fd, e.name)
	switch err {
	case nil:
	case unix.ENOENT:
		return true
	case unix.ENOTDIR, unix.ELOOP: // exchanged for something else
		return r.free(l, e.name, unix.Unlinkat(l.fd, e.name, 0))
	case unix.EXDEV:
		return r.fail(l, e.name, ErrMounted)
	default: // it may be empty
		if unix.Unlinkat(l.fd, e.name, unix.AT_REMOVEDIR) == nil {
			return true
		}
		return r.fail(l, e.name, err)
	}
	defer unix.Close(fd)
	return r.directory(ctx, &level{up: l, name: e.name, fd: fd, depth: l.depth + 1})
}

// directory empties and removes a directory. It is gone over again for as long as that has an effect: some file systems
// skip entries of a listing while others are removed, and directories from further down are moved to the top.
func (r *remover) directory(ctx context.Context, l *level) bool {
	if l.depth == 0 {
		r.top = l.fd
	}
	for {
		known, moved := r.faults.count(), r.moved
		removed, left := r.pass(ctx, l)
		more := l.depth == 0 && r.moved > moved
		if left == 0 {
			err := unix.Unlinkat(l.up.fd, l.name, unix.AT_REMOVEDIR)
			if err != unix.ENOTEMPTY || removed == 0 && !more {
				return r.free(l.up, l.name, err)
			}
		} else if !more {
			return false
		}
		if ctx.Err() != nil {
			return false
		}
		r.faults.truncate(known) // what stands will be met again
		if _, err := unix.Seek(l.fd, 0, unix.SEEK_SET); err != nil {
			return r.fail(l, "", err)
		}
	}
}

// pass goes over a directory once and counts what it removed and what it could not remove.
func (r *remover) pass(ctx context.Context, l *level) (removed, left int) {
	for e, err := range entries(l.fd, make([]byte, 8<<10)) {
		if err != nil {
			r.fail(l, "", err)
			return removed, left + 1
		}
		if ctx.Err() != nil {
			return removed, left + 1
		}
		if r.entry(ctx, l, e) {
			removed++
		} else {
			left++
		}
	}
	return removed, left
}

// move brings a directory to the top of the tree, where a later pass finds it. The name cannot be guessed, so that it
// cannot be taken.
func (r *remover) move(l *level, name string) bool {
	to := ".removing-" + rand.Text()
	err := unix.Renameat(l.fd, name, r.top, to)
	if err == unix.EACCES { // its own ".." changes, so it must be writable itself
		if err = permit(l.fd, name); err == nil {
			err = unix.Renameat(l.fd, name, r.top, to)
		}
	}
	if err == nil {
		r.moved++
	}
	return r.free(l, name, err)
}

// free turns the outcome of a call that takes a name away into a verdict.
func (r *remover) free(l *level, name string, err error) bool {
	if err == nil || err == unix.ENOENT {
		return true
	}
	return r.fail(l, name, err)
}

// fail records what could not be removed and why, as far as the kernel's answer needs an explanation.
func (r *remover) fail(l *level, name string, err error) bool {
	switch {
	case err == unix.EBUSY:
		err = ErrMounted
	case err == unix.EPERM && (flagged(l.fd, name) || flagged(l.fd, "")):
		err = ErrImmutable
	}
	path := name
	for ; l.depth > 0; l = l.up {
		path = l.name + "/" + path
	}
	if l.depth < 0 {
		path = "."
	}
	r.faults.add(&EntryError{Op: "remove", Path: strings.TrimSuffix(path, "/"), Err: err})
	return false
}

// flagged reports whether an inode flag forbids changes to an entry, or to the open directory itself.
func flagged(dir int, name string) bool {
	const flags = unix.STATX_ATTR_IMMUTABLE | unix.STATX_ATTR_APPEND
	var st unix.Statx_t
	err := unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH, 0, &st)
	return err == nil && st.Attributes&flags != 0
}

// openBelow opens a directory so that it can be listed and emptied, making it accessible if necessary.
func openBelow(dir int, name string) (int, error) {
	how := unix.OpenHow{Flags: openDir, Resolve: fsys.Strict}
	open := func() (int, error) { return unix.Openat2(dir, name, &how) }
	fd, err := again(open)
	if err == unix.EACCES {
		if permit(dir, name) == nil {
			fd, err = again(open)
		}
	}
	if err != nil {
		return -1, err
	}
	if st, err := fsys.Fstat(fd); err == nil && st.Mode&0o700 != 0o700 {
		// Root does not need it, the owner does, others may not; who may not sees it in the next step.
		_ = unix.Fchmod(fd, 0o700)
	}
	return fd, nil
}

// permit gives the owner of a directory all rights, without following a link that may have taken its place.
func permit(dir int, name string) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: fsys.Strict}
	fd, err := again(func() (int, error) { return unix.Openat2(dir, name, &how) })
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return fsys.ChmodHandle(fd, 0o700)
}
