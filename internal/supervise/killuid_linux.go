// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"
)

// errNotThatUser says that a uid was given that cannot be reserved for runs.
var errNotThatUser = errors.New("supervise: not a uid of a run")

// UserBusy reports whether the kernel knows a process of the uid, dead ones that nobody reaped included. getpriority of a
// user looks at every process and fails with ESRCH if none is the user's; it needs no privilege. An error counts as busy.
func UserBusy(uid int) (bool, error) {
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
// It needs a process that is that user and nothing else: as root, kill(-1) would end the machine, and a root process that
// became the user for a moment could be signalled by the payload in that moment. So a child gives up every id, makes
// sure of it, and kills; kill(-1) spares the caller. The payload may kill the child first; the next round follows. The
// caller must not take the uid for free before it has reaped the child.
func killUID(uid int) (killer int, err error) {
	if uid <= 0 {
		return 0, errNotThatUser
	}
	id := uintptr(uid)
	p := new(program)
	p.call(StepUser, unix.SYS_SETGROUPS, 0, 0)
	p.call(StepUser, unix.SYS_SETRESGID, id, id, id)
	p.call(StepUser, unix.SYS_SETRESUID, id, id, id)
	p.exactly(StepCheck, id, unix.SYS_GETUID)
	p.exactly(StepCheck, id, unix.SYS_GETEUID)
	// The result says nothing: the kernel returns 0 also if there was nobody whom it could signal.
	p.call(StepExec, unix.SYS_KILL, ^uintptr(0), uintptr(unix.SIGKILL)).allow = unix.ESRCH
	p.guard, p.ops = p.ops, nil
	return spawn(p)
}

// spawn forks and lets the child run the program. It returns the child's pid.
func spawn(p *program) (int, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, old unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	// A handler of the Go runtime must not run in the child, which is no Go process any more.
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &old); err != nil {
		return 0, err
	}
	pid, errno := fork(p)
	runtime.KeepAlive(p)
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil); err != nil {
		return 0, err
	}
	if errno != 0 {
		return 0, errno
	}
	return int(pid), nil
}
