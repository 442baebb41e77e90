// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/evoseal/containment/runaway"
)

// TestConcurrentReserveNeverExceeds: 64 goroutines, each of which spends at most what it reserved.
func TestConcurrentReserveNeverExceeds(t *testing.T) {
	t.Parallel()
	const limit = 5000
	l := runaway.Limits{
		Budget: runaway.Usage{Tokens: limit, Cost: none, Calls: 700}, MaxConcurrent: 64, MaxIterations: 900,
		NoImprovement: none,
	}
	g := open(t, runaway.UnsafeMemStore(), l, metered)
	var spent, begun, open atomic.Int64
	var all sync.WaitGroup
	for worker := range 64 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(worker)))
			for {
				e := runaway.Estimate{Tokens: 1 + r.Int64N(20), Calls: 1, Cost: 3}
				it, err := g.Begin(t.Context(), e)
				if err != nil {
					wantStop(t, err, 0)
					return
				}
				begun.Add(1)
				if open.Add(1) > 64 {
					t.Error("too many iterations are open")
				}
				used := 1 + r.Int64N(e.Tokens)
				spent.Add(used)
				if err := it.Spend(runaway.Usage{Tokens: used, Calls: 1}); err != nil {
					t.Errorf("spend within the reservation: %v", err)
				}
				open.Add(-1)
				_ = it.End(accepted)
			}
		})
	}
	all.Wait()
	st := g.Status()
	if spent.Load() > limit || st.Spent.Tokens != spent.Load() || begun.Load() != int64(st.Attempts) ||
		begun.Load() > 700 {
		t.Errorf("%d tokens spent, %d begun: %+v", spent.Load(), begun.Load(), st)
	}
	if st.Reserved != (runaway.Usage{}) {
		t.Errorf("reserved: %+v", st.Reserved)
	}
}

// TestConcurrentCap: the cap and the streak hold however many ask.
func TestConcurrentCap(t *testing.T) {
	t.Parallel()
	g := open(t, runaway.UnsafeMemStore(), runaway.Limits{MaxIterations: 100, MaxConcurrent: 64}, nil)
	var begun atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for it, err := range g.Iterations(t.Context(), runaway.Estimate{}) {
				if err != nil {
					wantStop(t, err, runaway.ReasonIterations)
					return
				}
				begun.Add(1)
				if err := it.End(accepted); err != nil { // others may go on although the cap is reached
					wantStop(t, err, runaway.ReasonIterations)
				}
			}
		})
	}
	all.Wait()
	if begun.Load() != 100 {
		t.Errorf("%d begun", begun.Load())
	}
}

// TestChildrenUnderRace: many children of one iteration, of two levels, never spend more than the run may.
func TestChildrenUnderRace(t *testing.T) {
	t.Parallel()
	const limit = 2000
	l := runaway.Limits{Budget: runaway.Usage{Tokens: limit}, MaxIterations: 1_000_000, MaxConcurrent: 4,
		NoImprovement: none}
	g := open(t, runaway.UnsafeMemStore(), l, metered)
	var spent atomic.Int64
	var all sync.WaitGroup
	work := func(g *runaway.Governor) {
		for {
			it, err := g.Begin(t.Context(), runaway.Estimate{Tokens: 7})
			if err != nil {
				return
			}
			spent.Add(5)
			_ = it.Spend(runaway.Usage{Tokens: 5})
			if it.End(accepted) != nil {
				return
			}
		}
	}
	var workers []*runaway.Governor
	for host := range 4 {
		it, err := g.Begin(t.Context(), runaway.Estimate{Tokens: int64(50 + host*50)})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			c := child(t, it, name+string(rune('0'+host)), l)
			sub, err := c.Begin(t.Context(), runaway.Estimate{Tokens: 20})
			if err != nil {
				t.Fatal(err)
			}
			deep := child(t, sub, "deep", l)
			workers = append(workers, c, deep, deep)
		}
	}
	for _, g := range workers {
		all.Go(func() { work(g) })
	}
	all.Wait()
	if st := g.Status(); spent.Load() > limit || st.Spent.Tokens > limit || spent.Load() < limit/2 {
		t.Errorf("%d spent, %+v", spent.Load(), st.Spent)
	}
	if leak, ok := errors.AsType[*runaway.LeakError](g.Close(t.Context())); !ok || len(leak.Iterations) != 4+8 {
		t.Errorf("close: %v", leak)
	}
}
