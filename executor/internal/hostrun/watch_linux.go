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
	startTime = 30 * time.Second // from the monitor's start to the payload's execve
	killTime  = 10 * time.Second // from the order to kill to the proof that nothing is left
	// PollPeriod is the time between two looks at counters that send no message: CPU, disk.
	PollPeriod = 25 * time.Millisecond
)

// Watch waits for the end of a run and ends it when it must.
type Watch struct {
	Process *supervise.Process
	Wall    time.Duration
	Over    <-chan struct{} // closed when a stream passed its limit
	// Poll looks at the counters; anything but CauseUnknown ends the run.
	Poll func() executor.Cause
}

// Ending is how a run ended, as the kernel told our monitor and our clock.
type Ending struct {
	Failed *supervise.Event // it did not start
	Leader *supervise.Event // wait status and usage of the payload
	Tree   *supervise.Event // usage of everything; nil: nobody proved that the tree is dead
	CPU    *supervise.Event // the sampled CPU time passed its limit
	Tasks  *supervise.Event // the sampled number of tasks reached its limit

	Host           executor.Cause // why the host ended the run; CauseUnknown if it did not
	Started, Ended time.Time
}

// watching is the state of one wait.
type watching struct {
	Watch
	end      Ending
	wall     <-chan time.Time
	deadline <-chan time.Time
}

// Wait returns when the monitor is gone. The error says that it did not end in time; then it is still there.
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
			return s.end, fmt.Errorf("%w: monitor %d does not answer", executor.ErrLost, w.Process.PID())
		}
	}
}

func (s *watching) event(e *supervise.Event) {
	switch e.Kind {
	case supervise.Started:
		s.end.Started = time.Now()
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
	case supervise.Empty:
		s.end.Tree = e
	case supervise.CPUOver:
		s.end.CPU = e
		s.stop(executor.CauseCPUTimeout)
	case supervise.TasksAt:
		s.end.Tasks = e
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
