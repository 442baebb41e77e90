// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// payloadScore makes the kernel choose the payload's processes before ours when memory runs out.
const payloadScore = "1000"

// StartChild starts the job as a child of this process, without a guard: for a process that is process 1 of its pid
// namespace, which is the reaper of everything in there anyway and whose end the payload cannot survive. The three
// descriptors become the payload's streams; they must not be 0, 1 or 2.
//
// It returns when the payload has executed its program; what fails before that is an event of kind Failed, and there is
// nothing to reap. Reserved, Reachable, Sample, Wrapper, Landlock, Cgroups and Into of the job are not looked at. The error
// matches [errors.ErrUnsupported] on architectures other than amd64 and arm64.
func StartChild(job Job, stdin, stdout, stderr int) (pid int, failed *Event, err error) {
	if vforkFlags == 0 {
		return 0, nil, fmt.Errorf("supervise: no child for this architecture: %w", errors.ErrUnsupported)
	}
	p, err := buildChild(&job, uintptr(stdin), uintptr(stdout), uintptr(stderr))
	if err != nil {
		return 0, nil, err
	}
	if pid, err = spawnChild(p); err != nil {
		return 0, &Event{Kind: Failed, Step: StepMonitor, Errno: errnoOf(err)}, nil
	}
	if p.failure[0] == 0 {
		return pid, nil, nil
	}
	for {
		if _, err = unix.Wait4(pid, nil, unix.WALL, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return 0, &Event{Kind: Failed, Step: Step(p.failure[0]), Errno: p.failure[1], Detail: p.failure[2]}, nil
}

// buildChild lays out the calls between vfork and execve.
func buildChild(job *Job, stdin, stdout, stderr uintptr) (*program, error) {
	p := newProgram(asInit)
	p.locate()
	p.note.guard = int32(os.Getpid())
	p.call(StepSession, unix.SYS_SETSID)
	p.call(StepSession, unix.SYS_UMASK, 0o022)
	p.stdio(stdin, stdout, stderr)
	if err := p.oomScore(); err != nil {
		return nil, err
	}
	p.limits(job)
	p.identity(job)
	if err := p.chdir(job.Dir); err != nil {
		return nil, err
	}
	p.signals()
	p.call(StepDescriptors, unix.SYS_CLOSE_RANGE, 3, maxFD, unix.CLOSE_RANGE_CLOEXEC)
	p.call(StepNoNewPrivs, unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	p.filter(job.Filter)
	p.check(job)
	return p, p.exec(job.Programs, job.Args, job.Env)
}

// oomScore has to come before execve: raising it afterwards is a race with the payload's first fork. The kernel sets the
// score of a child of vfork alone, although it borrows our memory.
func (p *program) oomScore() error {
	path, err := p.cstring("/proc/self/oom_score_adj")
	if err != nil {
		return err
	}
	p.call(StepOOMScore, unix.SYS_OPENAT, atCWD, path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	const size = uintptr(len(payloadScore))
	p.exactly(StepOOMScore, size, unix.SYS_WRITE, 0, p.bytes([]byte(payloadScore)), size)
	p.ops[len(p.ops)-1].fed = true
	return nil
}

// childMu guards current while a child of this process itself uses it.
var childMu sync.Mutex

// spawnChild is spawn for a child of this process itself, which keeps its memory. While the child borrows it, this thread
// sleeps in the kernel with every signal blocked, and no other thread needs what is on its stack.
func spawnChild(p *program) (int, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, old unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &old); err != nil {
		return 0, err
	}
	childMu.Lock()
	current = uintptr(unsafe.Pointer(p))
	pid, errno := vfork(unix.SYS_CLONE, uintptr(unix.SIGCHLD)|vforkFlags, 0)
	childMu.Unlock()
	runtime.KeepAlive(p)
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil); err != nil {
		return 0, err
	}
	if errno != 0 {
		return 0, unix.Errno(errno)
	}
	return int(pid), nil
}
