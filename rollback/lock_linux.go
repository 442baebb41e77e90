// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryLock reports whether the lock was free.
func tryLock(f *os.File, exclusive bool) (bool, error) {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	for {
		switch err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err {
		case nil:
			return true, nil
		case unix.EWOULDBLOCK:
			return false, nil
		case unix.EINTR:
		default:
			return false, os.NewSyscallError("flock", err)
		}
	}
}

// dropLock drops the lock and closes the file. Closing alone would leave it with a child that another goroutine has just
// forked and that has not executed its program yet.
func dropLock(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	_ = f.Close()
}
