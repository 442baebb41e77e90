// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"sync"
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

// monitor is the state of the monitor process.
type monitor struct {
	job    *Job
	leader int // pid; valid for signals through leaderFD only
	pidFD  int // pidfd of the leader
	killed sync.Once
	tree   tree

	mu       sync.Mutex
	watching bool
	peak     int64 // tasks
	cpu      int64 // nanoseconds
}

func monitorMain(params []byte) int {
	// The payload's death signal is bound to this thread; it stays here until the process ends.
	runtime.LockOSThread()
	m := &monitor{job: new(Job), pidFD: -1}
	if err := m.prepare(params); err != nil {
		report(Event{Kind: Failed, Step: StepMonitor, Errno: errnoOf(err)})
		return 1
	}
	if m.job.Reserved {
		if busy, err := uidBusy(m.job.UID); err != nil || busy {
			report(Event{Kind: Failed, Step: StepUIDBusy, Errno: errnoOf(err)})
			return 1
		}
	}
	if !m.start() {
		return 1
	}
	go m.obey()
	if m.job.Sample || m.job.CPULimit > 0 || m.job.TaskLimit > 0 {
		go m.sample()
	}
	return m.reap()
}

func (m *monitor) prepare(params []byte) error {
	if err := json.Unmarshal(params, m.job); err != nil {
		return unix.EBADMSG
	}
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
	return nil
}

// start forks the payload and waits until it executed its program or failed; it reports which.
func (m *monitor) start() bool {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		report(Event{Kind: Failed, Step: StepMonitor, Errno: errnoOf(err)})
		return false
	}
	prog, err := build(m.job, pipe[1])
	if err == nil {
		err = m.fork(prog)
	}
	runtime.KeepAlive(prog)
	unix.Close(pipe[1])
	m.dropPayloadFiles()
	if err != nil {
		report(Event{Kind: Failed, Step: StepMonitor, Errno: errnoOf(err)})
		return false
	}
	var failure [4]uint32
	buf := make([]byte, failureSize)
	n, err := readFull(pipe[0], buf)
	unix.Close(pipe[0])
	if n == 0 && err == nil {
		report(Event{Kind: Started})
		return true
	}
	if _, err := binary.Decode(buf, binary.NativeEndian, &failure); err != nil || n != failureSize {
		failure = [4]uint32{uint32(StepMonitor), uint32(unix.EIO)}
	}
	report(Event{Kind: Failed, Step: Step(failure[0]), Errno: failure[1], Detail: failure[2]})
	return true // the child is reaped like any other
}

func (m *monitor) fork(prog *program) error {
	var all, old unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	// A handler of the Go runtime must not run in the child, which is no Go process any more.
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &old); err != nil {
		return err
	}
	pid, errno := fork(prog)
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil); err != nil {
		return err
	}
	if errno != 0 {
		return errno
	}
	m.leader = int(pid)
	fd, err := unix.PidfdOpen(m.leader, 0)
	if err != nil {
		return errors.Join(err, unix.Kill(m.leader, unix.SIGKILL)) // not reaped yet: the pid is still its own
	}
	m.pidFD = fd
	return nil
}

// dropPayloadFiles closes our copies of the payload's streams, so that they end when the payload's tree ends.
func (m *monitor) dropPayloadFiles() {
	_ = unix.CloseRange(fdStdin, uint(fdCgroups+m.job.Cgroups)-1, 0)
}

// obey kills the tree when the host program says so by a byte, or is gone.
func (m *monitor) obey() {
	var b [1]byte
	for {
		_, err := unix.Read(fdControl, b[:])
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	m.kill()
}

// reap waits for everything until nothing is left, and reports the leader's end when it sees it.
func (m *monitor) reap() int {
	for {
		var ws unix.WaitStatus
		var ru unix.Rusage
		pid, err := unix.Wait4(-1, &ws, unix.WALL, &ru)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD):
			m.reportEmpty()
			return 0
		case err != nil:
			report(Event{Kind: Failed, Step: StepMonitor, Errno: errnoOf(err)})
			return 1
		case pid == m.leader && (ws.Exited() || ws.Signaled()):
			m.leader = -1
			report(usage(Event{Kind: Ended, Status: uint32(ws)}, &ru))
			m.killRest()
		}
	}
}

// killRest ends what the leader left behind; most runs leave nothing.
func (m *monitor) killRest() {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
	if !errors.Is(err, unix.ECHILD) {
		m.kill()
	}
}

func (m *monitor) reportEmpty() {
	var ru unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_CHILDREN, &ru)
	m.mu.Lock()
	defer m.mu.Unlock()
	report(usage(Event{Kind: Empty, CPU: m.cpu, Tasks: m.peak}, &ru))
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

// killPause is the time between two rounds of killing; the first rounds follow at once.
const killPause = time.Millisecond

// kill kills everything of the run again and again until this process ends, which is when nothing is left.
func (m *monitor) kill() {
	m.killed.Do(func() {
		go func() {
			for {
				if m.pidFD >= 0 {
					_ = unix.PidfdSendSignal(m.pidFD, unix.SIGKILL, nil, 0)
				}
				if m.job.Reserved {
					_ = killUID(m.job.UID)
				} else {
					m.tree.kill(os.Getpid())
				}
				time.Sleep(killPause)
			}
		}()
	})
}
