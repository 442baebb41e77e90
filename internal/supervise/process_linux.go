// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/evoseal/containment/internal/reexec"
)

// Files are the descriptors that a payload or its monitor gets. Start does not close them.
type Files struct {
	Stdin, Stdout, Stderr *os.File   // the payload's ends
	Ruleset               *os.File   // Landlock ruleset to enforce; nil: none
	Cgroups               []*os.File // files that the payload writes "0" to before anything else
	// Lock is held open by the monitor until it ends: a lock on it tells others that the run may still be alive.
	Lock *os.File
}

// Process is a monitor with its payload.
type Process struct {
	events  chan Event
	control *os.File
	monitor *os.Process
	kill    sync.Once
	done    chan error
}

// eventBuffer holds every event that one run can cause, so that the reader never waits for the run loop.
const eventBuffer = 8

// Start starts the monitor. Everything that happens from then on comes as events; the caller must Kill at some time or
// see the event Empty, and then Wait.
func Start(job Job, f Files) (*Process, error) {
	job.Landlock, job.Cgroups = f.Ruleset != nil, len(f.Cgroups)
	controlR, controlW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("supervise: %w", err)
	}
	defer controlR.Close()
	reportR, reportW, err := os.Pipe()
	if err != nil {
		controlW.Close()
		return nil, fmt.Errorf("supervise: %w", err)
	}
	defer reportW.Close()
	files := append([]*os.File{controlR, reportW, f.Lock, f.Stdin, f.Stdout, f.Stderr, f.Ruleset}, f.Cgroups...)
	monitor, err := reexec.Start(stageMonitor, job.encode(), files)
	if err != nil {
		return nil, errors.Join(err, controlW.Close(), reportR.Close())
	}
	p := &Process{events: make(chan Event, eventBuffer), control: controlW, monitor: monitor, done: make(chan error, 1)}
	go p.read(reportR)
	return p, nil
}

// read passes events on until the monitor is gone, and then reaps it.
func (p *Process) read(r *os.File) {
	defer r.Close()
	size := binary.Size(Event{})
	in := bufio.NewReaderSize(r, size*eventBuffer)
	buf := make([]byte, size)
	for {
		var e Event
		if _, err := io.ReadFull(in, buf); err != nil {
			break
		}
		if _, err := binary.Decode(buf, binary.NativeEndian, &e); err != nil {
			break
		}
		p.events <- e
	}
	close(p.events)
	_, err := p.monitor.Wait()
	p.done <- err
}

// PID is the monitor's process id.
func (p *Process) PID() int { return p.monitor.Pid }

// Events yields what the monitor reports. It is closed when the monitor ended, or closed its end.
func (p *Process) Events() <-chan Event { return p.events }

// Kill makes the monitor kill the whole tree; it does not wait. It may be called more than once.
func (p *Process) Kill() {
	p.kill.Do(func() { p.control.Close() })
}

// Wait waits at most d for the monitor to end by itself. After that it kills the monitor, and the error says so: then
// nobody has proven that the tree is dead.
func (p *Process) Wait(d time.Duration) error {
	defer p.Kill()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case err := <-p.done:
		return err
	case <-timer.C:
		return errors.Join(fmt.Errorf("supervise: monitor %d did not end within %v", p.PID(), d), p.monitor.Kill())
	}
}
