// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// busyTries bounds how long the child waits for a program file that is open for writing: another run of the host
// program may be between fork and exec and hold a copy of the descriptor. One try takes a millisecond.
const busyTries = 200

// fork starts a guard, which starts the payload, and returns the guard's pid.
//
// The caller has locked its thread and blocked every signal. The child is a copy of this one thread in a process that is
// no Go process any more: it runs raw system calls on memory that was laid out before, and calls nothing that could split
// the stack, allocate, take a lock, or be instrumented. Everything from here to the end of the file obeys that.
//
//go:noinline
//go:norace
//go:nocheckptr
func fork(p *program) (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	live(p)
	return 0, 0 // not reached
}

// live is everything that the process of a program does.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func live(p *program) {
	if step, e, _ := perform(p.guard); e != 0 {
		tell(p, Failed, step, uint32(e), 0)
		quit(1)
	}
	if p.programs == nil { // a killer, which starts nothing
		quit(0)
	}
	guard(p)
}

// perform makes the calls in their order and returns the step and errno of the first one that failed.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func perform(ops []op) (step uint32, errno syscall.Errno, index uint32) {
	var last uintptr
	for i := 0; i < len(ops); i++ {
		o := &ops[i]
		first := o.args[0]
		if o.fed {
			first = last
		}
		r, _, e := syscall.RawSyscall6(o.nr, first, o.args[1], o.args[2], o.args[3], o.args[4], o.args[5])
		if e == o.allow {
			e = 0
		}
		if e == 0 && o.exact && r != o.want {
			e = syscall.EPERM
		}
		if e != 0 {
			return uint32(o.step), e, o.index
		}
		last = r
	}
	return 0, 0, 0
}

// guard is the life of a guard: it starts the payload, says whether that worked, and waits for everything that becomes its
// child, until the kernel says that it has none left.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func guard(p *program) {
	self, _, _ := syscall.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
	p.note.guard = int32(self)
	leader, failed := begin(p)
	// The payload's files, and our end of the pipe on which it fails.
	syscall.RawSyscall(unix.SYS_CLOSE_RANGE, fdFailure, maxFD, 0)
	if failed != 0 {
		tell(p, Failed, uint32(StepCgroup), uint32(failed), 0)
		quit(1)
	}
	switch {
	case !started(p):
		tell(p, Failed, p.failure[0], p.failure[1], p.failure[2])
	case p.role != beforeWrapper:
		tell(p, Started, 0, 0, 0)
	}
	bury(p, leader)
}

// started reports whether the process that was begun has executed its program; if not, p.failure says why.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func started(p *program) bool {
	if p.role == asInit { // which shares its memory with a child that has not executed its program yet
		return p.failure[0] == 0
	}
	for {
		n, _, e := syscall.RawSyscall(unix.SYS_READ, fdOutcome, p.at.failure, failureSize)
		if e != syscall.EINTR {
			return e == 0 && n == 0
		}
	}
}

// bury reaps until nothing is left. If the leader left something behind, the server is asked to kill it.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func bury(p *program, leader uintptr) {
	const all = ^uintptr(0)
	asked := uint32(0)
	for {
		pid, _, e := syscall.RawSyscall6(unix.SYS_WAIT4, all, p.at.status, unix.WALL, p.at.rusage, 0, 0)
		if e == syscall.ECHILD {
			syscall.RawSyscall(unix.SYS_GETRUSAGE, selfChildren, p.at.rusage, 0)
			if p.role == asInit {
				tell(p, Reaped, 0, 0, 0)
				quit(0)
			}
			// The server first: it must know before the host program can give the uid to another run.
			notify(p, done)
			tell(p, Empty, 0, 0, asked)
			quit(0)
		}
		if e != 0 || pid != leader {
			continue
		}
		p.event.Status = *p.status
		if p.role == beforeWrapper {
			tell(p, Wrapped, uint32(StepWrapper), 0, 0)
		} else {
			tell(p, Ended, 0, 0, 0)
		}
		leader = 0
		if p.role == asInit { // everything else in the namespace; the kernel lets nobody fork meanwhile
			syscall.RawSyscall(unix.SYS_KILL, all, uintptr(syscall.SIGKILL), 0)
			continue
		}
		// Nothing is reaped by this; the answer is ECHILD if nothing is left, as after most runs.
		_, _, e = syscall.RawSyscall6(unix.SYS_WAITID, unix.P_ALL, 0, 0, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, 0, 0)
		if e != syscall.ECHILD {
			notify(p, left)
			asked = 1
		}
	}
}

// What a guard tells the server.
const (
	left int32 = iota + 1 // the leader ended and left something behind
	done                  // nothing is left
)

// note is a message of a guard to the server.
type note struct{ guard, what int32 }

//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func notify(p *program, what int32) {
	p.note.what = what
	syscall.RawSyscall(unix.SYS_WRITE, fdNotify, p.at.note, noteSize)
}

const noteSize = 8

// selfChildren is RUSAGE_CHILDREN.
const selfChildren = ^uintptr(0)

// begin starts the payload's process, in a cgroup of version 2 if the run has one: the kernel moves a process that exists
// only after it waited for every processor, and a new one at once.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func begin(p *program) (pid, errno uintptr) {
	current = uintptr(unsafe.Pointer(p))
	if p.into {
		return vfork(unix.SYS_CLONE3, p.at.clone, unsafe.Sizeof(cloneArgs{}))
	}
	return vfork(unix.SYS_CLONE, uintptr(unix.SIGCHLD)|vforkFlags, 0)
}

// current is the program of a guard or init, which is a process of its own: it has no other. It is no pointer, so that
// nothing has to be told to the collector, and no argument, because the race detector would look at the call.
var current uintptr

// payloadMain is what the child of vfork calls.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func payloadMain() { payload(*(**program)(unsafe.Pointer(&current))) }

// payload gives up everything and becomes the program, or says what failed.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func payload(p *program) {
	step, e, index := perform(p.ops)
	if parent, _, _ := syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); parent != uintptr(p.note.guard) {
		quit(127) // the guard died before the death signal was set, and there is nobody to tell
	}
	if e == 0 {
		step = uint32(StepExec)
		if p.role == beforeWrapper {
			step = uint32(StepWrapper)
		}
		e, index = execFirst(p)
	}
	p.failure[0], p.failure[1], p.failure[2] = step, uint32(e), index
	if p.role == asInit {
		quit(127)
	}
	syscall.RawSyscall(unix.SYS_WRITE, fdFailure, p.at.failure, failureSize)
	quit(127)
}

// execFirst tries the programs in turn and returns only if none is executed. Like execvp it goes on over what is not
// there, but a directory that cannot be searched counts as "not there", and a program whose interpreter is missing is
// told apart.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func execFirst(p *program) (failed syscall.Errno, detail uint32) {
	failed = syscall.ENOENT
	for i := 0; i < len(p.programs); i++ {
		var e syscall.Errno
		for try := 0; try < busyTries; try++ {
			_, _, e = syscall.RawSyscall(unix.SYS_EXECVE, p.programs[i], p.argv, p.envv)
			if e != syscall.ETXTBSY {
				break
			}
			syscall.RawSyscall(unix.SYS_NANOSLEEP, p.at.pause, 0, 0)
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
	return failed, detail
}

// tell writes one event with the usage that was read last.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func tell(p *program, kind Kind, step, errno, detail uint32) {
	e := p.event
	if e == nil { // a killer
		return
	}
	e.Kind, e.Step, e.Errno, e.Detail = kind, Step(step), errno, detail
	e.User = p.rusage.Utime.Sec*1e9 + p.rusage.Utime.Usec*1e3
	e.System = p.rusage.Stime.Sec*1e9 + p.rusage.Stime.Usec*1e3
	e.MaxRSS = p.rusage.Maxrss << 10
	syscall.RawSyscall(unix.SYS_WRITE, fdReport, p.at.event, unsafe.Sizeof(*e))
}

//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func quit(code uintptr) {
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, code, 0, 0)
	}
}
