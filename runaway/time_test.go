// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evoseal/containment/runaway"
)

// bubble runs a test with a clock of its own.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

func TestDeadlineFiresWithoutPolling(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			limits runaway.Limits
			want   runaway.Reason
			after  time.Duration
		}{
			"deadline":      {runaway.Limits{}, runaway.ReasonDeadline, 10*time.Minute + 7*time.Millisecond},
			"wall":          {runaway.Limits{Wall: 250 * time.Millisecond}, runaway.ReasonWall, 250 * time.Millisecond},
			"idle":          {runaway.Limits{Idle: 10 * time.Minute}, runaway.ReasonIdle, 10 * time.Minute},
			"per iteration": {runaway.Limits{PerIteration: 1500 * time.Microsecond}, 0, 1500 * time.Microsecond},
		} {
			began := time.Now()
			if name == "deadline" {
				c.limits.Deadline = began.Add(c.after)
			}
			g := open(t, runaway.UnsafeMemStore(), c.limits, nil)
			it := begin(t, g)
			ctx, cancel := it.Bind(t.Context())
			<-ctx.Done() // nobody asks the governor anything
			cancel()
			if took := time.Since(began); took < c.after || took > c.after+2*time.Millisecond {
				t.Errorf("%s: it fired after %v, want %v", name, took, c.after)
			}
			cause := context.Cause(ctx)
			if c.want != 0 {
				wantStop(t, cause, c.want)
				_ = it.End(rejected)
			} else if !errors.Is(cause, runaway.ErrLost) || !errors.Is(cause, context.DeadlineExceeded) {
				t.Errorf("%s: cause %v", name, cause)
			} else if st := g.Status(); st.Streak != 1 || len(st.Open) != 0 {
				t.Errorf("%s: %+v", name, st)
			}
			shut(t, g)
		}
	})
}

// TestWallOverSessions: 24 h of active time, in sessions with any pauses between them.
func TestWallOverSessions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, l := runaway.UnsafeMemStore(), runaway.Limits{}
		g := open(t, s, l, nil)
		for hour := range 24 {
			if active := g.Status().Active; active != time.Duration(hour)*time.Hour {
				t.Fatalf("%v active in hour %d", active, hour)
			}
			time.Sleep(30 * time.Minute)
			once(t, g, fresh(hour))
			time.Sleep(30*time.Minute - time.Duration(hour/23)) // one nanosecond is left
			shut(t, g)
			time.Sleep(7 * time.Hour) // closed
			g = open(t, s, l, nil)
		}
		once(t, g, fresh(24))
		time.Sleep(time.Second)
		_, err := g.Begin(t.Context(), runaway.Estimate{})
		wantStop(t, err, runaway.ReasonWall)
	})
}

// TestCrashMakesNoTimeFree: a session that is not closed is charged the time since its last record, at most 61 s.
func TestCrashMakesNoTimeFree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, c := range []struct{ alive, dead, want time.Duration }{
			{30 * time.Second, 0, 30 * time.Second},
			{30 * time.Second, 10 * time.Second, 40 * time.Second},
			{59 * time.Second, time.Hour, 61 * time.Second},
			{50*time.Minute + 30*time.Second, time.Hour, 50*time.Minute + 61*time.Second},
			// a tick was recorded every minute
		} {
			s := &crashStore{Store: runaway.UnsafeMemStore()}
			g := open(t, s, runaway.Limits{}, &runaway.Options{KillFile: t.TempDir() + "/STOP"})
			time.Sleep(c.alive)
			s.crash()
			_ = g.Close(t.Context())
			time.Sleep(c.dead)
			s.dead.Store(false)
			g = open(t, s, runaway.Limits{}, &runaway.Options{KillFile: t.TempDir() + "/STOP"})
			if got := g.Status().Active; got != c.want {
				t.Errorf("%+v: %v", c, got)
			}
			shut(t, g)
		}
	})
}

// crashStore is one whose process can die: from then on nothing is written.
type crashStore struct {
	runaway.Store
	dead atomic.Bool
}

func (s *crashStore) crash() { s.dead.Store(true) }

func (s *crashStore) Append(r *runaway.Record, durable bool) error {
	if s.dead.Load() {
		return errors.New("the process is dead")
	}
	return s.Store.Append(r, durable)
}

func TestPauseIsNotActive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := runaway.UnsafeMemStore()
		l := runaway.Limits{PerIteration: time.Minute, Wall: 10 * time.Minute, Idle: 2 * time.Minute}
		g := open(t, s, l, nil)
		it := begin(t, g)
		time.Sleep(30 * time.Second)
		if err := errors.Join(g.Pause("lunch"), g.Pause("again")); err != nil {
			t.Fatal(err)
		}
		if got := g.Status(); got.Paused != "again; lunch" {
			t.Errorf("paused: %q", got.Paused)
		}
		time.Sleep(10 * time.Second) // the iteration is still at work
		checked := make(chan error)
		go func() { checked <- it.Check(t.Context()) }()
		time.Sleep(5 * time.Hour)
		if active := g.Status().Active; active != 40*time.Second {
			t.Errorf("%v active in a pause", active)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := it.Check(short); !errors.Is(err, runaway.ErrPaused) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("check in a pause: %v", err)
		}
		if _, err := g.Begin(short, runaway.Estimate{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("begin with a context that has ended: %v", err)
		}
		if err := g.Resume(runaway.Approval{By: "me"}); !errors.Is(err, runaway.ErrUnapproved) ||
			g.Status().Paused == "" {
			t.Errorf("no reason: %v", err)
		}
		if err := g.Resume(runaway.Approval{By: "me", Reason: "back"}); err != nil {
			t.Fatal(err)
		}
		if err := <-checked; err != nil {
			t.Errorf("check after the pause: %v", err)
		}
		time.Sleep(19 * time.Second) // 59 s of its minute
		if err := it.End(fresh(1)); err != nil {
			t.Errorf("time in the pause was counted: %v", err)
		}

		// A pause outlasts a restart.
		if err := g.Pause("night"); err != nil {
			t.Fatal(err)
		}
		g = reopen(t, g, s, l, nil)
		long, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := g.Begin(long, runaway.Estimate{}); !errors.Is(err, runaway.ErrPaused) {
			t.Errorf("begin after a restart in a pause: %v", err)
		}
		begun := make(chan error)
		go func() {
			it, err := g.Begin(t.Context(), runaway.Estimate{})
			if err == nil {
				err = it.End(fresh(2))
			}
			begun <- err
		}()
		synctest.Wait()
		if err := g.Resume(runaway.Approval{By: "me", Reason: "day"}); err != nil {
			t.Fatal(err)
		}
		if err := <-begun; err != nil {
			t.Errorf("begin after the pause: %v", err)
		}
	})
}

// TestCloseIsBounded: whatever hangs, Close comes back and leaves no goroutine. A bubble does not end before all
// goroutines in it have, so the step is told to end afterwards.
func TestCloseIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := open(t, runaway.UnsafeMemStore(), runaway.Limits{MaxConcurrent: 2}, nil)
		it, stuck := begin(t, g), make(chan struct{})
		ctx, cancel := it.Bind(t.Context())
		defer cancel()
		go func() { <-stuck }()
		waiting := make(chan error)
		go func() {
			other := begin(t, g)
			_ = other
			_, err := g.Begin(t.Context(), runaway.Estimate{})
			waiting <- err
		}()
		synctest.Wait()
		began := time.Now()
		err := g.Close(t.Context())
		leak, ok := errors.AsType[*runaway.LeakError](err)
		if !ok || len(leak.Iterations) != 2 || leak.Iterations[0].Iteration != 1 {
			t.Errorf("close: %v", err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("close waited %v for a stuck step", took)
		}
		if err := <-waiting; !errors.Is(err, runaway.ErrClosed) {
			t.Errorf("who waited: %v", err)
		}
		if !errors.Is(context.Cause(ctx), runaway.ErrLost) {
			t.Errorf("bound context: %v", context.Cause(ctx))
		}
		if err := it.End(fresh(1)); !errors.Is(err, runaway.ErrLost) {
			t.Errorf("end after close: %v", err)
		}
		close(stuck)
	})
}

// hungStore never finishes to close.
type hungStore struct {
	runaway.Store
	hung chan struct{}
}

func (s hungStore) Close() error {
	<-s.hung
	return s.Store.Close()
}

func TestCloseWithAHungStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := hungStore{runaway.UnsafeMemStore(), make(chan struct{})}
		g, err := runaway.Open(t.Context(), runID, runaway.Limits{}, s,
			&runaway.Options{KillFile: t.TempDir() + "/STOP"})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := g.Close(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("close took %v", took)
		}
		close(s.hung)
	})
}
