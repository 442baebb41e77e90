// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/evoseal/containment/runaway"
)

var metered = &runaway.Options{Metered: runaway.MeterAll}

// TestFirstWave: without estimates one iteration gets everything, and the others wait until it has shown what one
// costs.
func TestFirstWave(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := open(t, runaway.UnsafeMemStore(), runaway.Limits{Budget: runaway.Usage{Tokens: 100}, MaxConcurrent: 8},
			&runaway.Options{Metered: runaway.MeterTokens})
		var open []*runaway.Iteration
		var mu sync.Mutex
		var refused []error
		for range 8 {
			go func() {
				it, err := g.Begin(t.Context(), runaway.Estimate{})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					refused = append(refused, err)
				} else {
					open = append(open, it)
				}
			}()
		}
		synctest.Wait()
		if len(open) != 1 || g.Status().Reserved.Tokens != 100 {
			t.Fatalf("%d admitted, %+v", len(open), g.Status())
		}
		if err := errors.Join(open[0].Spend(runaway.Usage{Tokens: 30}), open[0].End(accepted)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(open) != 3 || g.Status().Reserved.Tokens != 60 || len(refused) != 0 {
			t.Errorf("%d admitted after the first, %d refused, %+v", len(open)-1, len(refused), g.Status())
		}
		for _, it := range open[1:] {
			if err := errors.Join(it.Spend(runaway.Usage{Tokens: 30}), it.End(accepted)); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if len(refused) != 5 {
			t.Errorf("%d refused", len(refused))
		}
		for _, err := range refused {
			wantStop(t, err, runaway.ReasonTokens)
		}
	})
}

// TestCharge: what an iteration is charged, by what it reserved and reported.
func TestCharge(t *testing.T) {
	t.Parallel()
	reserve := runaway.Estimate{Tokens: 10, Cost: 10, Calls: 10, CPU: 10}
	for name, c := range map[string]struct {
		run  func(it *runaway.Iteration) error
		want runaway.Usage
	}{
		"nothing reported": {func(it *runaway.Iteration) error { return nil }, reserve},
		"nothing spent":    {func(it *runaway.Iteration) error { return it.Spend(runaway.Usage{}) }, runaway.Usage{}},
		"less": {func(it *runaway.Iteration) error { return it.Spend(runaway.Usage{Tokens: 3, Cost: 2}) },
			runaway.Usage{Tokens: 3, Cost: 2}},
		"in parts": {func(it *runaway.Iteration) error {
			return errors.Join(it.Spend(runaway.Usage{Tokens: 3}), it.Spend(runaway.Usage{Tokens: 4, Calls: 1}))
		}, runaway.Usage{Tokens: 7, Calls: 1}},
		"more": {func(it *runaway.Iteration) error { return it.Spend(runaway.Usage{Tokens: 30}) },
			runaway.Usage{Tokens: 30}},
		"unpriced": {func(it *runaway.Iteration) error {
			return it.Spend(runaway.Usage{Tokens: 1, Cost: 1,
				Unpriced: true})
		}, runaway.Usage{Tokens: 1, Cost: 10}},
		"unpriced and more": {func(it *runaway.Iteration) error {
			return errors.Join(it.Spend(runaway.Usage{Unpriced: true}), it.Spend(runaway.Usage{Cost: 40}))
		}, runaway.Usage{Cost: 40}},
		"negative": {func(it *runaway.Iteration) error {
			if err := it.Spend(runaway.Usage{Tokens: -1}); !errors.Is(err, runaway.ErrInvalidUsage) {
				return errors.New("a negative amount was taken")
			}
			return it.Spend(runaway.Usage{Tokens: 12})
		}, runaway.Usage{Tokens: 12, Cost: 10, Calls: 10, CPU: 10}},
	} {
		l := runaway.Limits{Budget: runaway.Usage{Tokens: 100, Cost: 100, Calls: 100, CPU: 100}}
		g := open(t, runaway.UnsafeMemStore(), l, metered)
		it := beginWith(t, g, reserve)
		if st := g.Status(); st.Reserved != reserve ||
			st.Remaining != (runaway.Usage{Tokens: 90, Cost: 90, Calls: 90, CPU: 90}) {
			t.Errorf("%s: %+v", name, st)
		}
		if err := errors.Join(c.run(it), it.End(accepted)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if st := g.Status(); st.Spent != c.want || st.Reserved != (runaway.Usage{}) {
			t.Errorf("%s: spent %+v, want %+v", name, st.Spent, c.want)
		}
	}
}

// TestSpendCrossesLimit: it is recorded, it stops, and the contexts of everything that is open end.
func TestSpendCrossesLimit(t *testing.T) {
	t.Parallel()
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := runaway.Limits{Budget: runaway.Usage{Tokens: 10}, MaxConcurrent: 2}
			g := open(t, store(), l, metered)
			it, other := beginWith(t, g, runaway.Estimate{Tokens: 5}), beginWith(t, g, runaway.Estimate{Tokens: 5})
			ctx, cancel := other.Bind(t.Context())
			defer cancel()
			stop := wantStop(t, it.Spend(runaway.Usage{Tokens: 11}), runaway.ReasonTokens)
			<-ctx.Done()
			if g.Status().Spent.Tokens != 11 || stop.Drain {
				t.Errorf("%+v, %v", g.Status().Spent, stop)
			}
			for _, err := range []error{it.End(accepted), other.Check(t.Context()),
				other.Spend(runaway.Usage{Tokens: 1}), other.End(accepted)} {
				wantStop(t, err, runaway.ReasonTokens)
			}
			shut(t, g)
			if again := refused(t, store(), l, metered); *again != *stop {
				t.Errorf("%v, before %v", again, stop)
			}
		})
	}
}

func TestZeroBudgetStops(t *testing.T) {
	t.Parallel()
	for reason, u := range map[runaway.Reason]runaway.Usage{
		runaway.ReasonTokens: {Tokens: 1}, runaway.ReasonCost: {Cost: 1}, runaway.ReasonCalls: {Calls: 1},
		runaway.ReasonCPU: {CPU: 1},
	} {
		g := open(t, runaway.UnsafeMemStore(), runaway.Limits{}, nil)
		it := begin(t, g)
		wantStop(t, it.Spend(u), reason)
		_ = it.End(accepted)

		g = open(t, runaway.UnsafeMemStore(), runaway.Limits{}, nil)
		_, err := g.Begin(t.Context(), u)
		wantStop(t, err, reason)
	}
	g := open(t, runaway.UnsafeMemStore(), runaway.Limits{}, nil)
	it := begin(t, g)
	wantStop(t, it.Spend(runaway.Usage{Unpriced: true}), runaway.ReasonCost) // an unknown cost, where none is allowed
	_ = it.End(accepted)
}

func TestOverflow(t *testing.T) {
	t.Parallel()
	all := runaway.Usage{Tokens: math.MaxInt64, Cost: math.MaxInt64, Calls: math.MaxInt64, CPU: math.MaxInt64}
	g := open(t, runaway.UnsafeMemStore(), runaway.Limits{Budget: free, MaxConcurrent: 2}, nil)
	for range 2 {
		it := beginWith(t, g, all)
		for range 3 {
			if err := it.Spend(all); err != nil {
				t.Fatal(err)
			}
		}
		if err := it.End(accepted); err != nil {
			t.Fatal(err)
		}
	}
	if st := g.Status(); st.Spent != all || st.SpentInWindow != all {
		t.Errorf("%+v", st.Spent)
	}

	limited := runaway.Limits{Budget: runaway.Usage{Tokens: math.MaxInt64 - 1}, MaxConcurrent: 2}
	g = open(t, runaway.UnsafeMemStore(), limited, metered)
	it := beginWith(t, g, runaway.Estimate{Tokens: math.MaxInt64 - 1})
	wantStop(t, errors.Join(it.Spend(runaway.Usage{Tokens: math.MaxInt64}), it.End(accepted)), runaway.ReasonTokens)
	if _, err := g.Begin(t.Context(), runaway.Estimate{Tokens: -1}); !errors.Is(err, runaway.ErrInvalidUsage) {
		t.Errorf("a negative estimate: %v", err)
	}
}

// TestLateSpend: what is reported after the end is gone all the same.
func TestLateSpend(t *testing.T) {
	t.Parallel()
	s, l := runaway.UnsafeMemStore(), runaway.Limits{Budget: runaway.Usage{Tokens: 100}}
	g := open(t, s, l, metered)
	it := beginWith(t, g, runaway.Estimate{Tokens: 10})
	if err := errors.Join(it.Spend(runaway.Usage{Tokens: 4}), it.End(accepted)); err != nil {
		t.Fatal(err)
	}
	if err := it.Spend(runaway.Usage{Tokens: 7}); !errors.Is(err, runaway.ErrLost) {
		t.Errorf("spend after the end: %v", err)
	}
	if err := it.Spend(runaway.Usage{Tokens: -7}); !errors.Is(err, runaway.ErrInvalidUsage) {
		t.Errorf("a refund after the end: %v", err)
	}
	g = reopen(t, g, s, l, metered)
	if got := g.Status().Spent.Tokens; got != 11 {
		t.Errorf("%d tokens spent", got)
	}
}
