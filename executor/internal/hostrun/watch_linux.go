// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"context"
	"fmt"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/supervise"
)

// Deadlines of the phases that are ours. They bound what a payload, or a broken host, can make us wait.
const (
	startTime = 30 * time.Second // from the start of the guard to the payload's execve
	killTime  = 10 * time.Second // from the order to kill to the proof that nothing is left
	// PollPeriod is the time between two looks at counters that send no message: CPU, disk.
	PollPeriod = 25 * time.Millisecond
)

// Watch waits for the end of a run and ends it when it must.
type Watch struct {
	Process *supervise.Process
	Wall    time.Duration
	CPU     time.Duration   // judged by what is sampled, if anything is
	Over    <-chan struct{} // closed when a stream passed its limit
	// OnStart is called when the payload has been started.
	OnStart func()
	// Poll looks at the counters; anything but CauseUnknown ends the run.
	Poll func() executor.Cause
}

// Ending is how a run ended, as the kernel told our guard and our clock.
type Ending struct {
	Failed *supervise.Event // it did not start
	Leader *supervise.Event // wait status and usage of the payload
	Tree   *supervise.Event // usage of everything; nil: nobody proved that the tree is dead
	CPU    time.Duration    // the most that was sampled; 0 if nothing is
	Tasks  int              // the same for the number of tasks

	Host           executor.Cause // why the host ended the run; CauseUnknown if it did not
	Started, Ended time.Time
}

// watching is the state of one wait.
type watching struct {
	Watch
	end      Ending
	reaped   *supervise.Event
	wall     <-chan time.Time
	deadline <-chan time.Time
}

// Wait returns when nothing more can be reported. The error says that this took too long; then nobody has proven that the
// run is over.
func (w Watch) Wait(ctx context.Context) (Ending, error) {
	s := &watching{Watch: w, deadline: time.After(startTime)}
	tick := time.NewTicker(PollPeriod)
	defer tick.Stop()
	cancelled := ctx.Done()
	for {
		select {
		case e, ok := <-w.Process.Events():
			if !ok {
				return s.end, nil
			}
			s.event(&e)
		case <-s.wall:
			s.stop(executor.CauseWallTimeout)
			s.wall = nil
		case <-cancelled:
			s.stop(executor.CauseCancelled)
			cancelled = nil
		case <-s.Over:
			s.stop(executor.CauseOutputLimit)
			s.Over = nil
		case <-tick.C:
			if cause := w.Poll(); cause != executor.CauseUnknown {
				s.stop(cause)
			}
		case <-s.deadline:
			w.Process.Kill()
			return s.end, fmt.Errorf("%w: its guard does not answer", executor.ErrLost)
		}
	}
}

func (s *watching) event(e *supervise.Event) {
	switch e.Kind {
	case supervise.Started:
		s.end.Started = time.Now()
		s.OnStart()
		s.wall = time.After(s.Wall)
		s.deadline = nil
		if s.end.Host != executor.CauseUnknown {
			s.deadline = time.After(killTime)
		}
	case supervise.Failed:
		if s.end.Failed == nil {
			s.end.Failed = e
		}
	case supervise.Ended:
		s.end.Leader, s.end.Ended = e, time.Now()
		s.wall, s.deadline = nil, time.After(killTime)
	case supervise.Reaped:
		s.reaped = e
	case supervise.Wrapped:
		if s.end.Started.IsZero() && s.end.Failed == nil && s.end.Host == executor.CauseUnknown {
			s.end.Failed = e
		}
	case supervise.Empty:
		s.end.Tree = e
		if s.reaped != nil { // what the run used, without what stands around it
			e.User, e.System, e.MaxRSS = s.reaped.User, s.reaped.System, s.reaped.MaxRSS
		}
		if s.end.Ended.IsZero() { // our init was killed together with the payload
			s.end.Ended = time.Now()
		}
	case supervise.Sampled:
		s.end.CPU, s.end.Tasks = time.Duration(e.CPU), int(e.Tasks)
		if s.end.CPU > s.CPU {
			s.stop(executor.CauseCPUTimeout)
		}
	}
}

// stop ends the run. The first cause is the one that counts; one that comes after the payload's own end is none.
func (s *watching) stop(cause executor.Cause) {
	if s.end.Host == executor.CauseUnknown && s.end.Leader == nil {
		s.end.Host = cause
		s.deadline = time.After(killTime)
	}
	s.Process.Kill()
}
