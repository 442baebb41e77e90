// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// directory is a verified directory. Everything goes through its descriptor, so that what happens to its path afterwards
// does not matter.
type directory struct {
	path string
	f    *os.File
}

// OpenDir opens a directory as FS. It must be a real one, belong to the effective user, and nobody else may write it;
// otherwise the error matches ErrUntrusted. With create it is made if it is missing, with mode 0700, and its name made
// durable.
func OpenDir(path string, create bool) (FS, error) {
	path = filepath.Clean(path) // a trailing slash would make the last component a link to be followed
	if create {
		if err := makeDir(path); err != nil {
			return nil, err
		}
	}
	f, err := openat(unix.AT_FDCWD, path, path, unix.O_RDONLY|unix.O_DIRECTORY)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, untrusted(path, "it is not a real directory", "remove what is there, or name another one")
	case err != nil:
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if rule := checkOwner(&st, 0o022); rule != "" {
		return nil, errors.Join(untrusted(path, rule, "chown it or chmod go-w it after a look at what is in it"), f.Close())
	}
	return &directory{path: path, f: f}, nil
}

// makeDir makes the directory and syncs its parent, also if it was there: whoever made it may not have done so.
func makeDir(path string) error {
	parent := filepath.Dir(path)
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrNotExist) && parent != path {
		if err = makeDir(parent); err == nil {
			err = os.Mkdir(path, 0o700)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.Open(parent)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// checkOwner says what is wrong with the owner or the permissions; forbidden are the bits that must not be set.
func checkOwner(st *unix.Stat_t, forbidden uint32) string {
	mode := uint32(st.Mode)
	if euid := os.Geteuid(); int(st.Uid) != euid {
		return fmt.Sprintf("it belongs to user %d, not to %d, who uses it", st.Uid, euid)
	}
	if mode&forbidden != 0 {
		return fmt.Sprintf("its mode %#o gives others what they must not have (%#o)", mode&0o7777, mode&forbidden)
	}
	return ""
}

func untrusted(path, rule, fix string) error {
	return &Error{Op: "open", Path: path, Rule: rule, Fix: fix, Kind: ErrUntrusted}
}

// openat opens without following a link at the end, without waiting for the other end of a pipe, and without giving the
// descriptor to any child.
func openat(dir int, name, path string, flags int) (*os.File, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		if err := unix.SetNonblock(fd, false); err != nil {
			return nil, errors.Join(err, unix.Close(fd))
		}
		return os.NewFile(uintptr(fd), path), nil
	}
}

// Open also returns a file that a rotation has just replaced: for a reader it is as good, and a writer looks again.
func (d *directory) Open(name string, how OpenMode) (File, error) {
	flags := map[OpenMode]int{ReadOnly: unix.O_RDONLY, ReadWrite: unix.O_RDWR, CreateOrOpen: unix.O_RDWR | unix.O_CREAT}[how]
	path := filepath.Join(d.path, name)
	f, err := openat(int(d.f.Fd()), name, path, flags)
	if errors.Is(err, unix.ELOOP) {
		return nil, untrusted(path, "it is a link", "find out who made it, and remove it")
	} else if err != nil {
		return nil, err
	}
	if err := checkFile(int(f.Fd()), path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &file{f}, nil
}

func checkFile(fd int, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	rule := checkOwner(&st, 0o077)
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		rule = "it is not a regular file"
	case st.Nlink > 1:
		rule = "it has a second name"
	}
	if rule == "" {
		return nil
	}
	return untrusted(path, rule, "find out who did that; then make it a regular file of mode 0600 with one name")
}

func (d *directory) Rename(from, to string) error {
	fd := int(d.f.Fd())
	return os.NewSyscallError("renameat", unix.Renameat(fd, from, fd, to))
}

func (d *directory) Sync() error  { return d.f.Sync() }
func (d *directory) Close() error { return d.f.Close() }
