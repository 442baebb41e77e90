// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor/containerd/internal/box/stream"
)

// Marker is the only argument of process 1.
const Marker = "containment-box-1"

// What the supervisor ends with. Nobody decides anything by it: a box that did not say how its run ended is lost.
const (
	exitDone     = 0
	exitDeadline = 124
	exitBroken   = 125
)

func init() {
	if len(os.Args) == 2 && os.Args[1] == Marker && os.Getpid() == 1 {
		exit(main())
	}
}

// exit ends the process at once, and with it everything in its pid namespace. os.Exit would run what the host program's
// instrumentation does at the end of a process.
func exit(code int) {
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(code), 0, 0)
	}
}

// supervisor is the state of the process.
type supervisor struct {
	in       *stream.Reader
	file     *os.File // under in, for deadlines
	out      *stream.Writer
	children chan os.Signal // something changed with a child
	open     stream.Open
}

// gcPercent keeps the collector busy rather than the heap large: the memory is the box's.
const gcPercent = 50

func main() int {
	s, err := begin()
	if err == nil {
		err = s.serve()
	}
	return status(err)
}

// status says why the process ends.
func status(err error) int {
	switch {
	case err == nil, err == io.EOF: // the host let go
		return exitDone
	case errors.Is(err, os.ErrDeadlineExceeded):
		fmt.Fprintln(os.Stderr, "containment: no job in time")
		return exitDeadline
	}
	fmt.Fprintf(os.Stderr, "containment: %.500v\n", err)
	return exitBroken
}

// begin makes the process what it has to be. Nobody in the box may look into it.
func begin() (*supervisor, error) {
	runtime.GOMAXPROCS(1) // every thread counts against the box, and there is little to do
	debug.SetGCPercent(gcPercent)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("dumpable: %w", err)
	}
	unix.Umask(0) // modes are those that the host names
	s := &supervisor{children: make(chan os.Signal, 1)}
	signal.Notify(s.children, unix.SIGCHLD)
	for fd := range 2 { // so that a goroutine waits for the other end and not a thread
		if err := unix.SetNonblock(fd, true); err != nil {
			return nil, fmt.Errorf("stream: %w", err)
		}
	}
	s.file = os.NewFile(0, "host")
	s.in, s.out = stream.NewReader(s.file), stream.NewWriter(os.NewFile(1, "host"))
	return s, nil
}

// serve takes the host's words in their order.
func (s *supervisor) serve() error {
	began := time.Now()
	if err := s.read(began.Add(stream.DefaultIdle), stream.KindOpen, &s.open); err != nil {
		return err
	}
	if s.open.Version != stream.Version {
		return fmt.Errorf("the host speaks version %d of the protocol, this supervisor %d", s.open.Version, stream.Version)
	}
	idle, hard := orDefault(s.open.Idle, stream.DefaultIdle), orDefault(s.open.Hard, stream.DefaultHard)
	time.AfterFunc(hard, func() { exit(exitDeadline) })
	hello, err := look()
	if err == nil {
		err = s.makeDirs()
	}
	if err != nil {
		return err
	}
	if err := s.out.Send(stream.KindHello, stream.Encode(hello)); err != nil {
		return err
	}
	var job stream.Job
	if err := s.read(time.Now().Add(idle), stream.KindJob, &job); err != nil {
		return err
	}
	return s.run(&job)
}

func orDefault(d, builtIn time.Duration) time.Duration {
	if d <= 0 {
		return builtIn
	}
	return d
}

// read waits for one message of the host.
func (s *supervisor) read(deadline time.Time, want stream.Kind, m stream.Message) error {
	if err := s.file.SetReadDeadline(deadline); err != nil {
		return err
	}
	kind, data, err := s.in.Next()
	switch {
	case err != nil:
		return err
	case kind == stream.KindExit:
		return io.EOF
	case kind != want:
		return fmt.Errorf("%w: kind %d in place of %d", stream.ErrProtocol, kind, want)
	}
	if err := stream.Decode(data, m); err != nil {
		return err
	}
	return s.file.SetReadDeadline(time.Time{})
}

// makeDirs makes what the host names. Runtimes do not all give a tmpfs the mode that they were told.
func (s *supervisor) makeDirs() error {
	for _, d := range s.open.Dirs {
		if err := os.Mkdir(d.Path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		fd, err := unix.Open(d.Path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open", Path: d.Path, Err: err}
		}
		if d.Owned {
			err = unix.Fchown(fd, s.open.UID, s.open.GID)
		}
		if err == nil {
			err = unix.Fchmod(fd, d.Mode&0o1777)
		}
		unix.Close(fd)
		if err != nil {
			return &os.PathError{Op: "chmod", Path: d.Path, Err: err}
		}
	}
	return nil
}
