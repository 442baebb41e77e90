// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"encoding/binary"
	"errors"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/reexec"
)

const (
	stageServer = "server"
	stageReaper = "reaper"
	fdSocket    = reexec.FirstFD // in the server, before it is moved out of the way
)

func init() {
	reexec.Register(stageServer, serverMain)
	reexec.Register(stageReaper, reaperMain)
}

// server is the state of the server process. Everything happens on one thread, in one loop: the guards' death signal is
// bound to that thread, and nothing has to wait for anything else.
type server struct {
	socket  int // jobs come from here; -1 once the host program closed it
	notifyR int // guards ask for help here
	notifyW int
	runs    map[int]*serving // by the guard's pid
	killers map[int]*serving // by the killer's pid
	tree    tree
}

func serverMain([]byte) int {
	runtime.LockOSThread()
	s := &server{runs: map[int]*serving{}, killers: map[int]*serving{}}
	if s.prepare() != nil {
		return 1
	}
	for s.socket >= 0 || len(s.runs)+len(s.killers) > 0 {
		s.step(s.wait())
		s.reap()
		s.kill()
		s.sample()
	}
	return 0
}

// prepare closes what the host program left open, and moves our own descriptors above the places that a guard uses.
func (s *server) prepare() (err error) {
	if err := closeInherited(fdSocket + 1); err != nil {
		return err
	}
	// A payload with our uid must not look into our memory or descriptors. Guards inherit this.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	if s.socket, err = unix.FcntlInt(fdSocket, unix.F_DUPFD_CLOEXEC, firstFD); err != nil {
		return err
	}
	// Whatever is opened or received later must not lie in the guards' places either.
	for fd := fdReport; fd < firstFD; fd++ {
		if ownDescriptor(fd) {
			continue // a guard has a table of its own, and covers it there
		}
		if err := unix.Dup3(0, fd, unix.O_CLOEXEC); err != nil {
			return err
		}
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return err
	}
	s.notifyR, s.notifyW = pipe[0], pipe[1]
	return nil
}

// closeInherited closes the descriptors from first on that came through the exec. Those that did not were opened in this
// process: if another package's initialiser came first and started a timer, the runtime has its poller by now.
func closeInherited(first int) error {
	dir, err := unix.Open("/proc/self/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	var names []string
	for buf := make([]byte, 4096); ; {
		n, err := unix.ReadDirent(dir, buf)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd >= first && !ownDescriptor(fd) {
			unix.Close(fd)
		}
	}
	return nil
}

// ownDescriptor reports whether a descriptor is open and cannot have come through an exec.
func ownDescriptor(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC != 0
}

const (
	// killPause is the time between two rounds of killing.
	killPause = time.Millisecond
	// reapPause bounds the time for which a guard that ended is not noticed. The host program does not wait for that.
	reapPause = 200 * time.Millisecond
)

// wait returns when something happened or a pause is over.
func (s *server) wait() []unix.PollFd {
	fds := []unix.PollFd{{Fd: int32(s.socket), Events: unix.POLLIN}, {Fd: int32(s.notifyR), Events: unix.POLLIN}}
	timeout := -1 // for ever, as long as there is nothing to look after
	least := func(d time.Duration) {
		if ms := int(d / time.Millisecond); timeout < 0 || ms < timeout {
			timeout = ms
		}
	}
	for _, r := range s.runs {
		fds = append(fds, unix.PollFd{Fd: int32(r.control), Events: unix.POLLIN})
		least(reapPause)
		if r.sampler != nil {
			least(samplePeriod)
		}
		if r.killing && !r.done {
			least(killPause)
		}
	}
	// A killer can outlive its run's guard, and the host program waits until it is reaped.
	if len(s.killers) > 0 {
		least(killPause)
	}
	if _, err := unix.Poll(fds, timeout); err != nil {
		return nil
	}
	return fds
}

// step does what the descriptors ask for.
func (s *server) step(fds []unix.PollFd) {
	for i, fd := range fds {
		switch {
		case fd.Revents == 0:
		case i == 0:
			s.receive()
		case i == 1:
			s.help()
		default:
			s.help() // a guard that was done before the host program let go must be known to be done
			s.stop(int(fd.Fd))
		}
	}
}

// stop begins to kill the run of a control pipe.
func (s *server) stop(control int) {
	for _, r := range s.runs {
		if r.control == control {
			unix.Close(r.control)
			r.control, r.killing = -1, true
		}
	}
}

// help reads what guards say.
func (s *server) help() {
	buf := make([]byte, noteSize)
	for {
		n, err := unix.Read(s.notifyR, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n != noteSize {
			return
		}
		guard := int(binary.NativeEndian.Uint32(buf))
		if r := s.runs[guard]; r != nil {
			r.killing = true
			r.done = r.done || binary.NativeEndian.Uint32(buf[4:]) == uint32(done)
			r.letGo()
		}
	}
}

// reap collects guards and killers that ended. A guard ends when nothing of its run is left.
func (s *server) reap() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WALL|unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid == 0 {
			return
		}
		if r := s.killers[pid]; r != nil {
			r.killer = false
			delete(s.killers, pid)
			r.letGo()
		}
		if r := s.runs[pid]; r != nil {
			r.done = true
			r.letGo()
			r.control = closed(r.control)
			delete(s.runs, pid)
		}
	}
}

// kill is one round for every run that shall end.
func (s *server) kill() {
	for guard, r := range s.runs {
		switch {
		case !r.killing || r.done || r.killer:
		case r.job.Reserved:
			// A leader that does not have its uid yet will have it in one of the next rounds.
			if killer, err := killUID(r.job.UID); err == nil {
				r.killer, s.killers[killer] = true, r
			}
		default:
			s.tree.kill(guard)
		}
	}
}

func (s *server) sample() {
	for guard, r := range s.runs {
		if r.sampler != nil && !r.done {
			r.sampler.look(&s.tree, guard, r.report)
		}
	}
}

// report writes one event. If nobody reads any more there is nobody to tell.
func report(fd int, e Event) {
	if buf, err := e.encode(); err == nil {
		_, _ = unix.Write(fd, buf)
	}
}

func errnoOf(err error) uint32 {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return uint32(errno)
	}
	return 0
}
