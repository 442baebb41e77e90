// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// file is a file of a directory. os.File makes Close safe against reads that are under way.
type file struct{ *os.File }

func (f *file) Stat() (int64, bool, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return 0, false, os.NewSyscallError("fstat", err)
	}
	return st.Size, st.Nlink > 0, nil
}

func (f *file) Sync() error { return datasync(f.File) }

func (f *file) Lock() error {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return ErrLocked
		default:
			return os.NewSyscallError("flock", err)
		}
	}
}

// Close drops the lock itself: closing alone would leave it with a child that another goroutine has just forked and that
// has not executed its program yet.
func (f *file) Close() error {
	var err error
	if raw, rawErr := f.SyscallConn(); rawErr == nil {
		_ = raw.Control(func(fd uintptr) { err = unix.Flock(int(fd), unix.LOCK_UN) })
	}
	return errors.Join(os.NewSyscallError("flock", err), f.File.Close())
}
