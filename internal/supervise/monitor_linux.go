// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/reexec"
)

const (
	stageMonitor = "monitor"
	stageReaper  = "reaper"
)

func init() {
	reexec.Register(stageMonitor, monitorMain)
	reexec.Register(stageReaper, reaperMain)
}

// monitor is the state of the monitor process. It does everything on one thread, in one loop: the payload's death signal
// is bound to that thread, and nothing has to wait for anything else.
type monitor struct {
	job     *Job
	leader  int // pid; 0 once it was reaped
	pidFD   int // pidfd of the leader
	control int // fdControl until it said its one word, then -1, which poll skips
	killing bool
	tree    tree
	sampler *sampler // nil: nothing is sampled
}

func monitorMain(params []byte) int {
	runtime.LockOSThread()
	m := &monitor{control: fdControl}
	if err := m.prepare(params); err != nil {
		report(Event{Kind: Failed, Step: StepMonitor, Errno: errnoOf(err)})
		return 1
	}
	if m.job.Reserved {
		if busy, err := UserBusy(m.job.UID); err != nil || busy {
			report(Event{Kind: Failed, Step: StepUIDBusy, Errno: errnoOf(err)})
			return 1
		}
	}
	if err := m.start(); err != nil {
		report(Event{Kind: Failed, Step: StepMonitor, Errno: errnoOf(err)})
		return 1
	}
	for !m.reap() {
		if m.killing {
			m.kill()
		}
		m.wait()
	}
	m.reportEmpty()
	return 0
}

func (m *monitor) prepare(params []byte) error {
	job, err := decodeJob(params)
	if err != nil {
		return unix.EBADMSG
	}
	m.job = job
	// Whatever the host program left open without close-on-exec ends here.
	first := uint(fdCgroups + m.job.Cgroups)
	if err := unix.CloseRange(first, ^uint(0)>>33, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	// A payload with our uid must not look into our memory or descriptors.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	unix.CloseOnExec(fdControl)
	unix.CloseOnExec(fdReport)
	unix.CloseOnExec(fdLock)
	if m.job.Sample || m.job.CPULimit > 0 || m.job.TaskLimit > 0 {
		m.sampler = &sampler{seen: map[taskID]time.Duration{}}
	}
	return nil
}

// start forks the payload and waits until it executed its program or failed; it reports which. An error means that there
// is no child.
func (m *monitor) start() error {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	prog, err := build(m.job, pipe[1])
	if err == nil {
		m.leader, err = spawn(prog)
	}
	unix.Close(pipe[1])
	m.dropPayloadFiles()
	if err != nil {
		return err
	}
	if m.pidFD, err = unix.PidfdOpen(m.leader, 0); err != nil {
		// Not reaped yet, so the pid is still the child's. Without a pidfd its end would be noticed at the next tick.
		_ = unix.Kill(m.leader, unix.SIGKILL)
		m.pidFD = -1
	}
	report(outcome(pipe[0]))
	return unix.Close(pipe[0])
}

// outcome waits until the child executed its program, which closes the pipe, or wrote what failed.
func outcome(fd int) Event {
	buf := make([]byte, failureSize)
	n, err := readFull(fd, buf)
	if n == 0 && err == nil {
		return Event{Kind: Started}
	}
	var failure [4]uint32
	if _, err := binary.Decode(buf, binary.NativeEndian, &failure); err != nil || n != failureSize {
		return Event{Kind: Failed, Step: StepMonitor, Errno: uint32(unix.EIO)}
	}
	return Event{Kind: Failed, Step: Step(failure[0]), Errno: failure[1], Detail: failure[2]}
}

// dropPayloadFiles closes our copies of the payload's streams, so that they end when the payload's tree ends.
func (m *monitor) dropPayloadFiles() {
	_ = unix.CloseRange(fdStdin, uint(fdCgroups+m.job.Cgroups)-1, 0)
}

const (
	// tick is the time after which orphans are reaped although nothing else happens. They count as processes of the run
	// until then.
	tick = 20 * time.Millisecond
	// killPause is the time between two rounds of killing.
	killPause = time.Millisecond
)

// wait returns when the leader ended, the host program said stop or is gone, or a tick has passed.
func (m *monitor) wait() {
	fds := []unix.PollFd{{Fd: int32(m.control), Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN}}
	timeout := tick
	if m.leader != 0 {
		fds[1].Fd = int32(m.pidFD)
	}
	if m.killing {
		timeout = killPause
	}
	if n, err := unix.Poll(fds, int(timeout/time.Millisecond)); err != nil || n == 0 {
		m.sample()
		return
	}
	if fds[0].Revents != 0 {
		// A byte, or the end of the pipe because nobody holds the other end any more: both mean the same.
		m.control, m.killing = -1, true
	}
}

// reap collects everything that has ended, reports the leader's end when it sees it, and reports whether nothing is left.
func (m *monitor) reap() (empty bool) {
	for {
		var ws unix.WaitStatus
		var ru unix.Rusage
		pid, err := unix.Wait4(-1, &ws, unix.WALL|unix.WNOHANG, &ru)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD):
			return true
		case err != nil || pid == 0:
			return false
		case pid == m.leader:
			m.leader = 0
			report(usage(Event{Kind: Ended, Status: uint32(ws)}, &ru))
			m.killing = true // what the leader left behind
		}
	}
}

// kill is one round: it kills every process of the run that there is.
func (m *monitor) kill() {
	if m.leader != 0 {
		// It may not have its uid yet. It is not reaped, so the pid is its own.
		_ = unix.Kill(m.leader, unix.SIGKILL)
	}
	if m.job.Reserved {
		_ = killUID(m.job.UID)
	} else {
		m.tree.kill(os.Getpid())
	}
}

func (m *monitor) sample() {
	if m.sampler != nil {
		m.sampler.look(&m.tree, m.job)
	}
}

func (m *monitor) reportEmpty() {
	var ru unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_CHILDREN, &ru)
	e := usage(Event{Kind: Empty}, &ru)
	if m.sampler != nil {
		e.CPU, e.Tasks = int64(m.sampler.cpu), int64(m.sampler.peak)
	}
	report(e)
}

func usage(e Event, ru *unix.Rusage) Event {
	e.User = ru.Utime.Nano()
	e.System = ru.Stime.Nano()
	e.MaxRSS = ru.Maxrss << 10
	return e
}

// report writes one event. If nobody reads any more there is nobody to tell.
func report(e Event) {
	buf, err := binary.Append(nil, binary.NativeEndian, e)
	if err == nil {
		_, _ = unix.Write(fdReport, buf)
	}
}

func errnoOf(err error) uint32 {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return uint32(errno)
	}
	return 0
}

func readFull(fd int, buf []byte) (n int, err error) {
	for n < len(buf) {
		k, err := unix.Read(fd, buf[n:])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return n, err
		case k == 0:
			return n, nil
		default:
			n += k
		}
	}
	return n, nil
}
