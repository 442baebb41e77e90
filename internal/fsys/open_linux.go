// SPDX-License-Identifier: Apache-2.0

package fsys

import (
	"strings"

	"golang.org/x/sys/unix"
)

// Strict leaves the kernel nothing to follow: no "..", no link of either sort, no mount point.
const Strict = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// maxRetries bounds what an attacker who renames in a loop can cost: the kernel answers EAGAIN when a rename anywhere
// made a resolution uncertain.
const maxRetries = 128

// maxPath is what one call resolves, in bytes. The kernel takes 4,095.
const maxPath = 4000

// Retry repeats a call that a signal interrupted, which some file systems report even under SA_RESTART, or whose
// resolution raced with a rename.
func Retry(call func() error) (err error) {
	for range maxRetries {
		if err = call(); err != unix.EINTR && err != unix.EAGAIN {
			return err
		}
	}
	return err
}

// Openat2 opens path below dir under [Strict]. It fails with ENOSYS on kernels before 5.6, and with ENOSYS or EPERM
// where a system-call filter denies it.
func Openat2(dir int, path string, flags, mode uint64) (fd int, err error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Mode: mode, Resolve: Strict}
	err = Retry(func() (err error) {
		fd, err = unix.Openat2(dir, path, &how)
		return err
	})
	if err != nil {
		return -1, err
	}
	return fd, nil
}

// OpenBeneath is [Openat2] for a path of any length. Where the kernel or a filter refuses openat2 it goes component by
// component and compares devices, which sees every mount but one of the same file system.
func OpenBeneath(dir int, path string, flags, mode uint64) (int, error) {
	return openBeneath(dir, path, flags, mode, Openat2)
}

type opener func(dir int, path string, flags, mode uint64) (int, error)

func openBeneath(dir int, path string, flags, mode uint64, open opener) (int, error) {
	top := dir
	defer func() {
		if dir != top {
			unix.Close(dir)
		}
	}()
	for len(path) > maxPath {
		cut := strings.LastIndexByte(path[:maxPath], '/')
		if cut <= 0 {
			return -1, unix.ENAMETOOLONG
		}
		next, err := openShort(dir, path[:cut], unix.O_PATH|unix.O_DIRECTORY, 0, open)
		if err != nil {
			return -1, err
		}
		if dir != top {
			unix.Close(dir)
		}
		dir, path = next, path[cut+1:]
	}
	return openShort(dir, path, flags, mode, open)
}

func openShort(dir int, path string, flags, mode uint64, open opener) (int, error) {
	fd, err := open(dir, path, flags, mode)
	if err == unix.ENOSYS || err == unix.EPERM && flags&unix.O_CREAT == 0 {
		return openSteps(dir, path, flags, mode)
	}
	return fd, err
}

// openSteps resolves one name at a time, so that no name in the middle can be a link.
func openSteps(dir int, path string, flags, mode uint64) (int, error) {
	var top unix.Stat_t
	if err := unix.Fstat(dir, &top); err != nil {
		return -1, err
	}
	at, last := dir, false
	for !last {
		var name string
		name, path, last = cutName(path)
		if name == ".." || name == "" {
			return -1, unix.EXDEV // what RESOLVE_BENEATH answers
		}
		f, m := uint64(unix.O_PATH|unix.O_DIRECTORY), uint64(0)
		if last {
			f, m = flags, mode
		}
		fd, err := openStep(at, name, f, m, uint64(top.Dev))
		if at != dir {
			unix.Close(at)
		}
		if err != nil {
			return -1, err
		}
		at = fd
	}
	return at, nil
}

func cutName(path string) (name, rest string, last bool) {
	name, rest, more := strings.Cut(path, "/")
	return name, rest, !more
}

func openStep(dir int, name string, flags, mode, dev uint64) (fd int, err error) {
	err = Retry(func() (err error) {
		fd, err = unix.Openat(dir, name, int(flags)|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(mode))
		return err
	})
	if err != nil {
		return -1, err
	}
	st, err := Fstat(fd)
	switch {
	case err != nil:
	case uint64(st.Dev) != dev:
		err = unix.EXDEV
	case st.Mode&unix.S_IFMT == unix.S_IFLNK && flags&unix.O_NOFOLLOW == 0: // O_PATH opens the link itself
		err = unix.ELOOP
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
