// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Descriptors of a guard, to which its first calls move what it was given. Those from fdFailure on are the payload's, and
// the guard closes them once it has started the payload.
const (
	fdReport  = 3 + iota // events go to the host program
	fdLock               // only held
	fdOutcome            // the payload's process says here what failed; its end says that nothing did
	fdNotify             // the server reads here which guard needs its help
	fdFailure            // other end of fdOutcome
	fdInto               // cgroup of version 2
	fdStdin
	fdStdout
	fdStderr
	fdRuleset
	fdCgroups // and the following ones
)

// Descriptors of a wrapper and of our init behind it, where those above are the same.
const (
	fdDiagnostics = fdCgroups + maxCgroups + iota // standard output and error of the wrapper
	// WrapperArgsFD is the wrapper's descriptor for its arguments.
	WrapperArgsFD
	fdInit  // the file that the wrapper executes as our init
	fdImage // what our init does
)

const (
	maxCgroups = 8
	// firstFD is where the server's own descriptors begin, above everything that a guard moves to a fixed place.
	firstFD = fdImage + 1
	maxFD   = ^uintptr(0) >> 32
	// failureSize is the size of what a payload's process writes that cannot go on.
	failureSize = 16
)

// op is one system call between fork and execve.
type op struct {
	nr    uintptr
	args  [6]uintptr
	want  uintptr
	allow unix.Errno // an errno that is as good as success
	exact bool       // the result must be want
	fed   bool       // the first argument is the result of the call before
	step  Step
	index uint32
}

// cloneArgs is struct clone_args.
type cloneArgs struct {
	flags, pidFD, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

// program is everything that a guard and its payload do, laid out before the fork: after it they may neither allocate
// nor call anything that could grow the stack or take a lock.
type program struct {
	role     role
	guard    []op
	ops      []op      // of the payload's process
	programs []uintptr // paths for execve
	argv     uintptr
	envv     uintptr
	into     bool
	clone    *cloneArgs
	pause    *unix.Timespec // between attempts while a program file is still open for writing
	failure  *[4]uint32     // step, errno, index or detail, padding
	status   *uint32
	rusage   *unix.Rusage
	event    *Event
	note     *note // with the guard's pid
	at       addresses
	keep     []any  // what other addresses point to
	image    *image // nil: this process's own memory is what they point to
}

// role is what a guard stands before.
type role uint32

const (
	beforePayload role = iota // the guard starts the payload
	beforeWrapper             // it starts a wrapper
	asInit                    // it is our init behind a wrapper, and starts the payload
)

// addresses of the fields above, as the kernel is given them. The collector does not move what is on the heap.
type addresses struct{ clone, pause, failure, status, rusage, event, note uintptr }

func newProgram(r role) *program {
	return &program{
		role: r, pause: &unix.Timespec{Nsec: 1e6}, failure: new([4]uint32), status: new(uint32), rusage: new(unix.Rusage),
		event: new(Event), note: new(note),
		clone: &cloneArgs{flags: unix.CLONE_INTO_CGROUP | vforkFlags, exitSignal: uint64(unix.SIGCHLD), cgroup: fdInto},
	}
}

// locate notes where the memory of the fields is.
func (p *program) locate() {
	p.at = addresses{
		clone: p.bytes((*[unsafe.Sizeof(*p.clone)]byte)(unsafe.Pointer(p.clone))[:]),
		pause: place(p, p.pause), failure: place(p, p.failure), status: place(p, p.status), rusage: place(p, p.rusage),
		event: place(p, p.event), note: place(p, p.note),
	}
}

// given are the descriptors that a guard moves to their places, as the server has them.
type given struct {
	report, lock, outcome, notify, failure, into, stdin, stdout, stderr, ruleset int // -1: none
	cgroups                                                                      []int
	diagnostics, args, init, image                                               int
}

func (g given) list() []int {
	list := append([]int{
		g.report, g.lock, g.outcome, g.notify, g.failure, g.into, g.stdin, g.stdout, g.stderr, g.ruleset,
	}, g.cgroups...)
	for len(list) < fdDiagnostics-fdReport {
		list = append(list, -1)
	}
	return append(list, g.diagnostics, g.args, g.init, g.image)
}

// buildGuard lays out what a guard does for the job, and what it starts.
func buildGuard(job *Job, g given) (*program, error) {
	if job.Wrapper != nil {
		return buildWrapped(job, g)
	}
	p := newProgram(beforePayload)
	p.into = job.Into
	p.locate()
	p.layGuard(g)
	p.begin(job)
	p.identity(job)
	// It comes after the change of ids, which clears it.
	p.call(StepDeathSignal, unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL))
	if err := p.chdir(job.Dir); err != nil {
		return nil, err
	}
	if err := p.reach(job.Reachable); err != nil {
		return nil, err
	}
	p.signals()
	p.call(StepDescriptors, unix.SYS_CLOSE_RANGE, 3, maxFD, unix.CLOSE_RANGE_CLOEXEC)
	p.call(StepNoNewPrivs, unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if job.Landlock {
		p.call(StepLandlock, unix.SYS_LANDLOCK_RESTRICT_SELF, fdRuleset, 0)
	}
	p.filter(job.Filter)
	p.check(job)
	return p, p.exec(job.Programs, job.Args, job.Env)
}

// begin are the first calls of a payload's process.
func (p *program) begin(job *Job) {
	p.call(StepSession, unix.SYS_SETSID)
	zero := p.bytes([]byte("0"))
	for i := range job.Cgroups {
		// Writing 0 moves the writer. First of all, so that the cgroups count everything after it.
		p.exactly(StepCgroup, 1, unix.SYS_WRITE, uintptr(fdCgroups+i), zero, 1)
	}
	p.call(StepSession, unix.SYS_UMASK, 0o022)
	p.stdio(fdStdin, fdStdout, fdStderr)
	p.limits(job)
}

func (p *program) stdio(files ...uintptr) {
	for i, fd := range files {
		p.call(StepStdio, unix.SYS_DUP3, fd, uintptr(i), 0)
	}
}

// layGuard: the guard takes what is its own, closes everything else that the server has, becomes the reaper of whatever
// the payload starts, and dies with the server.
func (p *program) layGuard(g given) {
	payloads := p.ops
	p.ops = nil
	for i, fd := range g.list() {
		if fd >= 0 {
			p.call(StepMonitor, unix.SYS_DUP3, uintptr(fd), uintptr(fdReport+i), 0)
		}
	}
	p.call(StepMonitor, unix.SYS_CLOSE_RANGE, firstFD, maxFD, 0)
	p.call(StepMonitor, unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	p.call(StepMonitor, unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL))
	p.exactly(StepMonitor, uintptr(os.Getpid()), unix.SYS_GETPPID)
	p.guard, p.ops = p.ops, payloads
}

func (p *program) call(step Step, nr uintptr, args ...uintptr) *op {
	o := op{nr: nr, step: step}
	copy(o.args[:], args)
	p.ops = append(p.ops, o)
	return &p.ops[len(p.ops)-1]
}

func (p *program) exactly(step Step, want uintptr, nr uintptr, args ...uintptr) {
	o := p.call(step, nr, args...)
	o.exact, o.want = true, want
}

// bytes keeps b and returns its address. The collector does not move what is on the heap.
func (p *program) bytes(b []byte) uintptr {
	if p.image != nil {
		return p.image.put(b)
	}
	p.keep = append(p.keep, b)
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))
}

// place is bytes for a value. One in an image is a copy: what v says later is not in it.
func place[T any](p *program, v *T) uintptr {
	if p.image != nil {
		return p.image.put(unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)))
	}
	p.keep = append(p.keep, v)
	return uintptr(unsafe.Pointer(v))
}

// words is bytes for a list of words.
func (p *program) words(list []uintptr) uintptr {
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), len(list)*wordSize)
	if p.image == nil {
		p.keep = append(p.keep, list)
		return uintptr(unsafe.Pointer(unsafe.SliceData(list)))
	}
	return p.image.put(b)
}

const wordSize = int(unsafe.Sizeof(uintptr(0)))

func (p *program) cstring(s string) (uintptr, error) {
	b, err := unix.ByteSliceFromString(s)
	if err != nil {
		return 0, fmt.Errorf("supervise: %q: %w", s, err)
	}
	return p.bytes(b), nil
}

func (p *program) cstrings(list []string) (uintptr, error) {
	ptrs := make([]uintptr, len(list)+1) // the last one stays 0
	for i, s := range list {
		ptr, err := p.cstring(s)
		if err != nil {
			return 0, err
		}
		ptrs[i] = ptr
	}
	return p.words(ptrs), nil
}

func (p *program) limits(job *Job) {
	for _, l := range job.Rlimits {
		lim := &unix.Rlimit{Cur: l.Soft, Max: l.Hard}
		p.call(StepRlimit, unix.SYS_PRLIMIT64, 0, uintptr(l.Resource), place(p, lim), 0).index = uint32(l.Resource)
	}
	if n := len(job.Affinity); n > 0 {
		mask := p.bytes(unsafe.Slice((*byte)(unsafe.Pointer(&job.Affinity[0])), n*8))
		p.call(StepAffinity, unix.SYS_SCHED_SETAFFINITY, 0, uintptr(n*8), mask)
	}
}

func (p *program) chdir(dir string) error {
	ptr, err := p.cstring(dir)
	p.call(StepDir, unix.SYS_CHDIR, ptr)
	return err
}

// reach tries the declared mounts with the payload's own ids.
func (p *program) reach(paths []string) error {
	for i, path := range paths {
		ptr, err := p.cstring(path)
		if err != nil {
			return err
		}
		p.call(StepReachable, unix.SYS_FACCESSAT, atCWD, ptr, unix.R_OK).index = uint32(i)
	}
	return nil
}

// signals gives the payload default dispositions and an empty mask, whatever the host program ignores or blocks. The
// dispositions come first: no handler of this process may run in the child.
func (p *program) signals() {
	action := p.bytes(make([]byte, 64)) // a zeroed struct sigaction: SIG_DFL, no flags
	for sig := uintptr(1); sig <= 64; sig++ {
		if sig != uintptr(unix.SIGKILL) && sig != uintptr(unix.SIGSTOP) {
			p.call(StepSignals, unix.SYS_RT_SIGACTION, sig, action, 0, 8)
		}
	}
	p.call(StepSignals, unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, action, 0, 8)
}

func (p *program) filter(filter []byte) {
	if len(filter) == 0 {
		return
	}
	const size = int(unsafe.Sizeof(unix.SockFilter{}))
	// struct sock_fprog, with an address of the memory in which the program runs.
	prog := &struct {
		length uint16
		filter uintptr
	}{uint16(len(filter) / size), p.bytes(filter)}
	p.call(StepSeccomp, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, place(p, prog))
	p.exactly(StepCheck, unix.SECCOMP_MODE_FILTER, unix.SYS_PRCTL, unix.PR_GET_SECCOMP, 0, 0, 0, 0)
}

func (p *program) exec(programs, args, env []string) (err error) {
	for _, path := range programs {
		ptr, err := p.cstring(path)
		if err != nil {
			return err
		}
		p.programs = append(p.programs, ptr)
	}
	if p.argv, err = p.cstrings(args); err != nil {
		return err
	}
	p.envv, err = p.cstrings(env)
	return err
}
