// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// busyTries bounds how long the child waits for a program file that is open for writing: another run of the host
// program may be between fork and exec and hold a copy of the descriptor. One try takes a millisecond.
const busyTries = 200

// fork runs the program in a child process and returns the child's pid in the parent.
//
// The caller has locked its thread and blocked every signal. The child is a copy of this one thread: it runs raw system
// calls on memory that was laid out before, and calls nothing that could split the stack, allocate, or be instrumented.
//
//go:noinline
//go:norace
//go:nocheckptr
func fork(p *program) (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	for i := 0; i < len(p.ops); i++ {
		o := &p.ops[i]
		r, _, e := syscall.RawSyscall6(o.nr, o.args[0], o.args[1], o.args[2], o.args[3], o.args[4], o.args[5])
		if e == o.allow {
			e = 0
		}
		if e == 0 && o.exact && r != o.want {
			e = syscall.EPERM
		}
		if e != 0 {
			die(p, uint32(o.step), uint32(e), o.index)
		}
	}
	execFirst(p)
	return 0, 0 // not reached
}

// execFirst tries the programs in turn and never returns. Like execvp it goes on over what is not there, but a directory
// that cannot be searched counts as "not there", and a program whose interpreter is missing is told apart.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func execFirst(p *program) {
	failed, detail := syscall.ENOENT, uint32(0)
	for i := 0; i < len(p.programs); i++ {
		var e syscall.Errno
		for try := 0; try < busyTries; try++ {
			_, _, e = syscall.RawSyscall(unix.SYS_EXECVE, p.programs[i], p.argv, p.envv)
			if e != syscall.ETXTBSY {
				break
			}
			syscall.RawSyscall(unix.SYS_NANOSLEEP, pauseAddr(p), 0, 0)
		}
		_, _, missing := syscall.RawSyscall(unix.SYS_FACCESSAT, atCWD, p.programs[i], 0)
		if missing != 0 && (e == syscall.ENOENT || e == syscall.ENOTDIR || e == syscall.EACCES) {
			continue
		}
		if detail == 0 && failed == syscall.ENOENT {
			failed = e
			if e == syscall.ENOENT {
				detail = 1
			}
		}
		if e != syscall.EACCES && e != syscall.ENOENT {
			break
		}
	}
	die(p, uint32(StepExec), uint32(failed), detail)
}

//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func die(p *program, step, errno, index uint32) {
	p.failure[0], p.failure[1], p.failure[2] = step, errno, index
	syscall.RawSyscall(unix.SYS_WRITE, p.errFD, failureAddr(p), failureSize)
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 127, 0, 0)
	}
}
