// SPDX-License-Identifier: Apache-2.0

package fsys

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// Exchange swaps two names in one step. Some network and FUSE file systems cannot and answer EINVAL, old kernels
// ENOSYS.
func Exchange(fromDir int, from string, toDir int, to string) error {
	return Retry(func() error { return unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_EXCHANGE) })
}

// Place moves a name to one that is free and fails with EEXIST where it is not. Where the kernel cannot do that in one
// step, what is no directory gets the second name first and loses the first one then.
func Place(fromDir int, from string, toDir int, to string) error {
	err := Retry(func() error { return unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_NOREPLACE) })
	if err != unix.EINVAL && err != unix.ENOSYS {
		return err
	}
	if err := Retry(func() error { return unix.Linkat(fromDir, from, toDir, to, 0) }); err != nil {
		return err
	}
	return Retry(func() error { return unix.Unlinkat(fromDir, from, 0) })
}

// proc is the name by which the calls that take no handle reach what a handle holds.
func proc(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// ChmodHandle sets the mode of what an O_PATH handle holds. It must not be a link. Kernels before 6.6 have no such call
// and do it through the handle's name in /proc.
func ChmodHandle(fd int, mode uint32) error {
	err := Retry(func() error { return unix.Fchmodat(fd, "", mode, unix.AT_EMPTY_PATH) })
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		err = Retry(func() error { return unix.Chmod(proc(fd), mode) })
	}
	return err
}

// ChownHandle sets the owner of what an O_PATH handle holds, a link too.
func ChownHandle(fd, uid, gid int) error {
	return Retry(func() error { return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH) })
}

// SetTime sets the modification time of what an O_PATH handle holds, a link too, and leaves the time of access. Kernels
// before 5.8 have no such call and do it through the handle's name in /proc, which does not work for a link.
func SetTime(fd int, sec int64, nsec uint32) error {
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: sec, Nsec: int64(nsec)}}
	err := Retry(func() error { return unix.UtimesNanoAt(fd, "", times, unix.AT_EMPTY_PATH) })
	if err == unix.EINVAL || err == unix.ENOENT {
		err = Retry(func() error { return unix.UtimesNanoAt(unix.AT_FDCWD, proc(fd), times, 0) })
	}
	return err
}

// SyncFS makes everything durable that was written to the file system of a handle.
func SyncFS(fd int) error {
	return Retry(func() error { return unix.Syncfs(fd) })
}

// StartWriteout asks the kernel to begin writing a file's data, and does not wait. That it is refused means nothing:
// the sync that follows does the work and reports.
func StartWriteout(fd int) {
	_ = unix.SyncFileRange(fd, 0, 0, unix.SYNC_FILE_RANGE_WRITE)
}
