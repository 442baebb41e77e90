// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evoseal/containment/runaway"
)

func child(t testing.TB, it *runaway.Iteration, name string, l runaway.Limits) *runaway.Governor {
	t.Helper()
	g, err := it.Child(t.Context(), name, l)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestChildSpendsItsParents: three children that may spend 2.00 each have 1.25 between them.
func TestChildSpendsItsParents(t *testing.T) {
	t.Parallel()
	g := open(t, runaway.UnsafeMemStore(), runaway.Limits{Budget: runaway.Usage{Cost: 1_250_000}}, metered)
	it := begin(t, g)
	var spent atomic.Int64
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		c := child(t, it, name, runaway.Limits{Budget: runaway.Usage{Cost: 2_000_000}})
		all.Go(func() {
			for inner, err := range c.Iterations(t.Context(), runaway.Estimate{Cost: 100_000}) {
				if err != nil {
					wantStop(t, err, runaway.ReasonCost)
					return
				}
				spent.Add(100_000)
				if err := errors.Join(inner.Spend(runaway.Usage{Cost: 100_000}), inner.End(accepted)); err != nil {
					wantStop(t, err, runaway.ReasonCost)
				}
			}
		})
	}
	all.Wait()
	if st := g.Status(); spent.Load() != 1_200_000 || st.Spent.Cost != 1_200_000 || st.Nested != 12 ||
		st.Attempts != 1 {
		t.Errorf("%d spent, %+v", spent.Load(), st)
	}
	if err := it.End(accepted); err != nil {
		t.Errorf("the host had begun and may end: %v", err)
	}
	_, err := g.Begin(t.Context(), runaway.Estimate{})
	if stop := wantStop(t, err, runaway.ReasonCost); stop.Scope != "" {
		t.Errorf("stopped: %v", stop)
	}
}

// TestChildCountsForItsParent: other names grant no further iterations.
func TestChildCountsForItsParent(t *testing.T) {
	t.Parallel()
	g := open(t, runaway.UnsafeMemStore(), runaway.Limits{MaxIterations: 20}, nil)
	begun := 0
	for it, err := range g.Iterations(t.Context(), runaway.Estimate{}) {
		if err != nil {
			wantStop(t, err, runaway.ReasonIterations)
			break
		}
		begun++
		for _, name := range []string{"a", "b", "c"} {
			c, err := it.Child(t.Context(), name+string(rune('a'+begun)), runaway.Limits{Iterations: 3})
			if err != nil {
				break
			}
			steps, _ := drive(t, c, fresh)
			begun += steps
		}
		_ = it.End(fresh(begun))
	}
	if st := g.Status(); begun != 20 || st.Attempts+st.Nested != 20 {
		t.Errorf("%d begun, %+v", begun, st)
	}
}

// TestChildSurvives restarts: its counts go on, its stop holds, and its limits cannot be loosened.
func TestChildSurvives(t *testing.T) {
	t.Parallel()
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, inner := runaway.Limits{Budget: runaway.Usage{Tokens: 100}}, runaway.Limits{Iterations: 3,
				Budget: runaway.Usage{Tokens: 50}}
			e := runaway.Estimate{Tokens: 10}
			g := open(t, store(), l, metered)
			it := beginWith(t, g, e)
			c := child(t, it, "fix", inner)
			if err := beginWith(t, c, e).End(rejected); err != nil {
				t.Fatal(err)
			}
			beginWith(t, c, e) // and nobody ends it
			if leak, ok := errors.AsType[*runaway.LeakError](g.Close(t.Context())); !ok || len(leak.Iterations) != 2 {
				t.Fatalf("close: %v", leak)
			}
			g = open(t, store(), l, metered)
			if st := g.Status(); st.Spent.Tokens != 20 || st.Nested != 2 || st.Streak != 1 {
				t.Errorf("the parent: %+v", st)
			}
			it = beginWith(t, g, e)
			if _, err := it.Child(t.Context(), "fix", runaway.Limits{Iterations: 4}); !errors.Is(err,
				runaway.ErrLimitsLoosened) {
				t.Errorf("loosened: %v", err)
			}
			c = child(t, it, "fix", inner)
			if st := c.Status(); st.Attempts != 2 || st.Spent.Tokens != 20 || st.Streak != 2 || st.Scope != "fix" {
				t.Errorf("the child: %+v", st)
			}
			if steps, stop := drive(t, c, failing); steps != 1 || stop.Reason != runaway.ReasonCompleted ||
				stop.Scope != "fix" {
				t.Errorf("%d steps, then %v", steps, stop)
			}
			if err := it.End(rejected); err != nil {
				t.Errorf("the child's stop is not its parent's: %v", err)
			}
			g = reopen(t, g, store(), l, metered)
			it = beginWith(t, g, e)
			if _, err := it.Child(t.Context(), "fix", inner); !errors.Is(err, runaway.ErrStopped) {
				t.Errorf("the stop of the child: %v", err)
			}
			child(t, it, "another", inner)
			_ = it.End(rejected)
		})
	}
}

// TestChildWithinReservation: a host that reserved everything leaves it to its children, so nothing waits for ever.
func TestChildWithinReservation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := runaway.Limits{Budget: runaway.Usage{Tokens: 100, Calls: none}, MaxConcurrent: 2}
		g := open(t, runaway.UnsafeMemStore(), l, metered)
		it := begin(t, g) // without an estimate: everything
		if got := g.Status().Reserved.Tokens; got != 100 {
			t.Fatalf("%d reserved", got)
		}
		c := child(t, it, "in", runaway.Limits{Budget: runaway.Usage{Tokens: 40, Calls: none}, MaxConcurrent: 2})
		one := begin(t, c)
		if st, cs := g.Status(), c.Status(); st.Reserved.Tokens != 100 || cs.Reserved.Tokens != 40 ||
			cs.Remaining.Tokens != 0 {
			t.Errorf("parent %+v, child %+v", st.Reserved, cs.Reserved)
		}
		second := make(chan *runaway.Iteration)
		go func() {
			other, err := c.Begin(t.Context(), runaway.Estimate{Tokens: 15})
			if err != nil {
				t.Errorf("the second: %v", err)
			}
			second <- other
		}()
		synctest.Wait()
		if err := errors.Join(one.Spend(runaway.Usage{Tokens: 20}), one.End(accepted)); err != nil {
			t.Fatal(err)
		}
		other := <-second
		if st := g.Status(); st.Spent.Tokens != 20 || st.Reserved.Tokens != 80 {
			t.Errorf("%+v", st)
		}
		// The end of the host ends what is open in it.
		ctx, cancel := other.Bind(t.Context())
		defer cancel()
		if err := it.End(accepted); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		if st := g.Status(); st.Spent.Tokens != 35 || st.Reserved != (runaway.Usage{}) || len(st.Open) != 0 {
			t.Errorf("%+v", st)
		}
		if _, err := c.Begin(t.Context(), runaway.Estimate{}); !errors.Is(err, runaway.ErrClosed) {
			t.Errorf("a child without a host: %v", err)
		}
		if err := other.End(accepted); !errors.Is(err, runaway.ErrLost) {
			t.Errorf("an iteration without a host: %v", err)
		}
	})
}

// TestChildStops: what stops the parent stops the child, what stops the child does not stop the parent.
func TestChildStops(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := open(t, runaway.UnsafeMemStore(), runaway.Limits{}, nil)
		it := begin(t, g)
		c := child(t, it, "c", runaway.Limits{PerIteration: time.Minute, Wall: 90 * time.Second})
		d := child(t, it, "d", runaway.Limits{})
		inner := begin(t, c)
		ctx, cancel := inner.Bind(t.Context())
		defer cancel()
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) || c.Status().Streak != 1 ||
			g.Status().Streak != 0 {
			t.Errorf("%v, %+v", context.Cause(ctx), c.Status())
		}
		inner = begin(t, c)
		ctx, cancel = inner.Bind(t.Context())
		defer cancel()
		<-ctx.Done()
		wantStop(t, context.Cause(ctx), runaway.ReasonWall)
		wantStop(t, inner.End(accepted), runaway.ReasonWall)
		if err := it.Check(t.Context()); err != nil {
			t.Errorf("the host: %v", err)
		}
		inner = begin(t, d)
		ctx, cancel = inner.Bind(t.Context())
		defer cancel()
		if err := g.Stop(runaway.ReasonOperator, "enough"); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		wantStop(t, context.Cause(ctx), runaway.ReasonOperator)
		wantStop(t, inner.Spend(runaway.Usage{}), runaway.ReasonOperator)
		_, err := d.Begin(t.Context(), runaway.Estimate{})
		wantStop(t, err, runaway.ReasonOperator)
		_ = it.End(accepted)
	})
}

// TestChildWallIsItsOwn: time in which no host has the child is not its time.
func TestChildWallIsItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := runaway.UnsafeMemStore()
		g := open(t, s, runaway.Limits{}, nil)
		for i := range 3 {
			it := begin(t, g)
			c := child(t, it, "c", runaway.Limits{Wall: time.Hour})
			if got := c.Status().Active; got != time.Duration(i)*10*time.Minute {
				t.Errorf("%v active", got)
			}
			time.Sleep(10 * time.Minute)
			if i == 1 {
				if err := c.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			_ = it.End(fresh(i))
			time.Sleep(20 * time.Minute)
			g = reopen(t, g, s, runaway.Limits{}, nil)
		}
	})
}

func TestChildRefused(t *testing.T) {
	t.Parallel()
	g := open(t, runaway.UnsafeMemStore(), runaway.Limits{MaxConcurrent: 2, MaxDepth: 1, MaxIterations: 6}, nil)
	it, other := begin(t, g), begin(t, g)
	for _, name := range []string{"", ".", "a/b", "../a", "a b", string(make([]byte, 65))} {
		if _, err := it.Child(t.Context(), name, runaway.Limits{}); !errors.Is(err, runaway.ErrInvalidOptions) {
			t.Errorf("%q: %v", name, err)
		}
	}
	_, err := it.Child(t.Context(), "a/b", runaway.Limits{MaxNeutral: -1, Budget: runaway.Usage{Tokens: 1}})
	for _, want := range []error{runaway.ErrConfig, runaway.ErrInvalidLimits, runaway.ErrUnmetered,
		runaway.ErrInvalidOptions} {
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	c := child(t, it, "c", runaway.Limits{})
	if _, err := other.Child(t.Context(), "c", runaway.Limits{}); !errors.Is(err, runaway.ErrInvalidOptions) {
		t.Errorf("a child of two: %v", err)
	}
	if _, err := begin(t, c).Child(t.Context(), "d", runaway.Limits{}); !errors.Is(err, runaway.ErrInvalidOptions) {
		t.Errorf("too deep: %v", err)
	}
	for _, name := range []string{"1", "2", "3", "4", "5"} {
		child(t, it, name, runaway.Limits{})
	}
	if _, err := it.Child(t.Context(), "6", runaway.Limits{}); !errors.Is(err, runaway.ErrInvalidOptions) {
		t.Errorf("more children than iterations: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := it.Child(cancelled, "c", runaway.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	_, _ = it.End(accepted), other.End(accepted)
}
