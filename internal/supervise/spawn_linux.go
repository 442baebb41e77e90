// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// spawn forks and lets the child run the program. It returns the child's pid.
func spawn(prog *program) (int, error) {
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
	pid, errno := fork(prog)
	runtime.KeepAlive(prog)
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil); err != nil {
		return 0, err
	}
	if errno != 0 {
		return 0, errno
	}
	return int(pid), nil
}
