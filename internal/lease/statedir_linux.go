// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// stateDir is a directory that was verified once through the descriptor that every later operation uses, so that what
// happens to its path afterwards does not matter. Descriptors of this package are plain numbers: the garbage collector
// must never close one, because that would drop a lock.
type stateDir struct {
	path string
	fd   int
}

// openStateDir creates the directory if it is missing (parents included, with the same mode) and opens it. In a place
// like /tmp anybody may have made it first: a link, a foreign owner or foreign write permission is refused.
func openStateDir(path string, mode fs.FileMode) (*stateDir, error) {
	if path == "" {
		return nil, &DirError{path, "is not named", "name one", fs.ErrInvalid}
	}
	path = filepath.Clean(path) // a trailing slash would make the last component a link to be followed
	if err := os.MkdirAll(path, mode.Perm()); err != nil {
		return nil, &DirError{path, "cannot be made", "make it, or name another one", err}
	}
	fd, err := openat(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, &DirError{path, "is not a real directory", "remove what is there, or name another one", err}
	case err != nil:
		return nil, &DirError{path, "cannot be opened", "correct its permissions, or name another one", err}
	}
	d := &stateDir{path: path, fd: fd}
	if err := d.verify(); err != nil {
		_ = d.close()
		return nil, err
	}
	return d, nil
}

func (d *stateDir) verify() error {
	var st unix.Stat_t
	if err := unix.Fstat(d.fd, &st); err != nil {
		return &DirError{d.path, "cannot be examined", "name another one", err}
	}
	if euid := os.Geteuid(); int(st.Uid) != euid {
		rule := fmt.Sprintf("belongs to user %d, not to %d, who uses it", st.Uid, euid)
		return &DirError{d.path, rule, "remove it, or name another one", fs.ErrPermission}
	}
	if st.Mode&0o022 != 0 {
		rule := fmt.Sprintf("can be written to by others (mode %#o)", st.Mode&0o7777)
		return &DirError{d.path, rule, "look at what is in it, then chmod go-w", fs.ErrPermission}
	}
	return nil
}

// close makes later operations fail with EBADF instead of meeting a reused descriptor.
func (d *stateDir) close() error {
	fd := d.fd
	d.fd = -1
	return unix.Close(fd)
}

func (d *stateDir) join(name string) string { return filepath.Join(d.path, name) }

// names lists the directory through a descriptor of its own, because the position belongs to the open file.
func (d *stateDir) names() ([]string, error) {
	fd, err := openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), d.path)
	defer func() { _ = f.Close() }()
	return f.Readdirnames(-1)
}

// openat opens without following a link at the end, and without giving the descriptor to any child.
func openat(dir int, name string, flags int, perm uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, perm)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// lock takes the exclusive lock of fd and reports whether it was free.
func lock(fd int) (bool, error) {
	switch err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	default:
		return false, fmt.Errorf("lock: %w", err)
	}
}

// unlock drops the lock and closes fd. Closing alone would leave the lock with a child that another goroutine has just
// forked and that has not executed its program yet.
func unlock(fd int) error {
	err := unix.Flock(fd, unix.LOCK_UN)
	return errors.Join(err, unix.Close(fd))
}

// writeAll writes data at the beginning of fd.
func writeAll(fd int, data []byte) error {
	for off := 0; off < len(data); {
		n, err := unix.Pwrite(fd, data[off:], int64(off))
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("write: %w", err)
		}
		off += max(n, 0)
	}
	return nil
}
