// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/reexec"
)

// Files are the descriptors that a payload or its guard gets. Start does not close them.
type Files struct {
	Stdin, Stdout, Stderr *os.File   // the payload's ends
	Ruleset               *os.File   // Landlock ruleset to enforce; nil: none
	Cgroups               []*os.File // files that the payload writes "0" to before anything else
	Into                  *os.File   // directory of a cgroup of version 2 in which payload or wrapper begin; nil: none
	// Wrapper is for a payload behind a wrapper; nil: none.
	Wrapper *WrapperFiles
	// Lock is held open by the guard until it ends: a lock on it tells others that the run may still be alive.
	Lock *os.File
}

// WrapperFiles are the descriptors of a wrapper.
type WrapperFiles struct {
	Diagnostics *os.File // its standard output and error
	Args        *os.File // at [WrapperArgsFD]
	Init        *os.File // what [NewInit] returned; it is executed by [InitPath]
}

// Process is a guard with its payload.
type Process struct {
	events  chan Event
	control *os.File
	kill    sync.Once
	killed  atomic.Bool
}

// eventBuffer holds the events of an ordinary run, so that the reader need not wait for the run loop.
const eventBuffer = 8

// Start starts the job under a guard. Everything that happens from then on comes as events; the caller must Kill at some
// time or see the event Empty, and then Wait.
func (s *Server) Start(job Job, f Files) (*Process, error) {
	job.Landlock, job.Into, job.Cgroups = f.Ruleset != nil, f.Into != nil, len(f.Cgroups)
	if job.Cgroups > maxCgroups {
		return nil, fmt.Errorf("supervise: %d cgroups, at most %d are possible", job.Cgroups, maxCgroups)
	}
	if (job.Wrapper == nil) != (f.Wrapper == nil) {
		return nil, errors.New("supervise: a wrapper needs its files")
	}
	params, err := reexec.Sealed(job.encode())
	if err != nil {
		return nil, err
	}
	defer params.Close()
	controlR, controlW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("supervise: %w", err)
	}
	defer controlR.Close()
	reportR, reportW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("supervise: %w", err), controlW.Close())
	}
	defer reportW.Close()
	files := []*os.File{params, controlR, reportW, f.Lock, f.Stdin, f.Stdout, f.Stderr, f.Ruleset, f.Into}
	if w := f.Wrapper; w != nil {
		files = append(files, w.Diagnostics, w.Args, w.Init)
	}
	files = slices.DeleteFunc(append(files, f.Cgroups...), func(f *os.File) bool { return f == nil })
	if err := s.send(files); err != nil {
		return nil, errors.Join(err, controlW.Close(), reportR.Close())
	}
	p := &Process{events: make(chan Event, eventBuffer), control: controlW}
	go p.read(reportR)
	return p, nil
}

// read passes events on until the guard is gone.
func (p *Process) read(r *os.File) {
	defer close(p.events)
	defer r.Close()
	size := binary.Size(Event{})
	in := bufio.NewReaderSize(r, size*eventBuffer)
	buf := make([]byte, size)
	for {
		var e Event
		if _, err := io.ReadFull(in, buf); err != nil {
			return
		}
		if _, err := binary.Decode(buf, binary.NativeEndian, &e); err != nil {
			return
		}
		p.events <- e
		// The guard's last word. If nobody was killed that is all; else the server may have a killer under way, and closes
		// its end when that is over.
		if e.Kind == Empty && e.Detail == 0 && !p.killed.Load() {
			return
		}
	}
}

// Events yields what is reported. It is closed when nothing more can come.
func (p *Process) Events() <-chan Event { return p.events }

// Kill makes the server kill the whole tree; it does not wait. It may be called more than once.
func (p *Process) Kill() {
	p.kill.Do(func() {
		p.killed.Store(true)
		p.control.Close()
	})
}

// Wait waits at most d for the end of the events, of which the caller has read all that it wants.
func (p *Process) Wait(d time.Duration) error {
	defer p.Kill()
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case _, ok := <-p.events:
			if !ok {
				return nil
			}
		case <-timer.C:
			return fmt.Errorf("supervise: the guard did not end within %v", d)
		}
	}
}

// Server is the process that starts the payloads of one executor. It runs as long as it is open or a run of it lives.
type Server struct {
	mu     sync.Mutex // guards what follows
	socket *os.File   // nil: not started
	ended  chan struct{}
	closed bool
}

// ErrClosed says that the server was closed.
var ErrClosed = errors.New("supervise: closed")

// send gives the server one job. A server that is gone, because somebody killed it, is started once more.
func (s *Server) send(files []*os.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	var err error
	for tries := 2; tries > 0; tries-- {
		if s.closed {
			return ErrClosed
		}
		if s.socket == nil {
			if err = s.launch(); err != nil {
				return err
			}
		}
		err = sendRights(int(s.socket.Fd()), fds)
		if err == nil || errors.Is(err, unix.ETOOMANYREFS) {
			return err
		}
		s.socket.Close()
		s.socket = nil
	}
	return fmt.Errorf("supervise: send to the server: %w", err)
}

// crowdedTime is how long a job waits while too many descriptors of this uid are in flight. The kernel counts them for the
// uid, so a run with the caller's own uid can use the number up until it ends.
const crowdedTime = 10 * time.Second

func sendRights(socket int, fds []int) error {
	for deadline := time.Now().Add(crowdedTime); ; {
		err := unix.Sendmsg(socket, []byte{1}, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ETOOMANYREFS) && time.Now().Before(deadline):
			time.Sleep(5 * time.Millisecond)
		default:
			return err
		}
	}
}

func (s *Server) launch() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("supervise: socketpair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "server"), os.NewFile(uintptr(pair[1]), "server")
	defer theirs.Close()
	process, err := reexec.Start(stageServer, nil, []*os.File{theirs})
	if err != nil {
		return errors.Join(err, ours.Close())
	}
	ended := make(chan struct{})
	go func() {
		_, _ = process.Wait()
		close(ended)
	}()
	s.socket, s.ended = ours, ended
	return nil
}

// Close lets the server end after the last of its runs, and waits for that at most d. Runs that are under way go on.
func (s *Server) Close(d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.socket == nil {
		return nil
	}
	err := s.socket.Close()
	s.socket = nil
	select {
	case <-s.ended:
	case <-time.After(d):
	}
	return err
}
