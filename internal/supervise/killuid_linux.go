// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"errors"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// errNotThatUser says that the thread could not become the user whose processes it should have signalled.
var errNotThatUser = errors.New("supervise: the thread did not become the user")

// uidBusy reports whether the kernel knows a process of the uid, dead ones that nobody reaped included. getpriority of a
// user looks at every process and fails with ESRCH if none is the user's; it needs no privilege.
func uidBusy(uid int) (bool, error) {
	if uid <= 0 {
		return true, errNotThatUser // 0 would mean "my own"
	}
	_, err := unix.Getpriority(unix.PRIO_USER, uid)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.ESRCH):
		return false, nil
	}
	return true, err
}

// killUID sends SIGKILL to every process of uid, as the kernel does it for kill(-1): under the lock that every fork
// needs, so that no process can slip away by forking.
//
// It works by making one thread of this process that user. As root, kill(-1) would end the machine: nothing is sent
// unless the kernel confirms that the thread's real and effective ids are uid and that uid is not 0.
func killUID(uid int) error {
	if uid <= 0 {
		return errNotThatUser
	}
	runtime.LockOSThread()
	id := uintptr(uid)
	// The saved id stays 0, so that the thread can come back. A signal is permitted by the real or effective id.
	if _, _, e := syscall.RawSyscall(unix.SYS_SETRESUID, id, id, 0); e != 0 {
		runtime.UnlockOSThread() // nothing has changed
		return e
	}
	err := errNotThatUser
	ruid, _, _ := syscall.RawSyscall(unix.SYS_GETUID, 0, 0, 0)
	euid, _, _ := syscall.RawSyscall(unix.SYS_GETEUID, 0, 0, 0)
	if ruid == id && euid == id {
		// The result says nothing: the kernel returns 0 also if there was nobody whom it could signal.
		_, _, _ = syscall.RawSyscall(unix.SYS_KILL, ^uintptr(0), uintptr(unix.SIGKILL), 0)
		err = nil
	}
	// If the thread cannot come back it stays locked and ends with its goroutine.
	if _, _, e := syscall.RawSyscall(unix.SYS_SETRESUID, 0, 0, 0); e != 0 {
		return errors.Join(err, e)
	}
	runtime.UnlockOSThread()
	return err
}
