// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/evoseal/containment/runaway"
)

// TestNoAllocations: the accounting of an iteration costs no memory of its own. It runs alone, since all allocations
// of the process are counted.
func TestNoAllocations(t *testing.T) {
	g := open(t, runaway.UnsafeMemStore(), wide(), metered)
	step := func() {
		it, err := g.Begin(t.Context(), oneStep)
		if err == nil {
			err = errors.Join(it.Spend(oneStep), it.End(accepted))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := testing.AllocsPerRun(2000, step); got != 0 {
		t.Errorf("%v allocations for an iteration", got)
	}
}

// TestAfterClose: a closed governor does nothing, and says so.
func TestAfterClose(t *testing.T) {
	t.Parallel()
	for name, store := range stores(t) {
		g := open(t, store(), runaway.Limits{}, nil)
		once(t, g, rejected)
		before := g.Status().Head
		once(t, g, rejected)
		head := g.Status().Head
		shut(t, g)
		_, beginErr := g.Begin(t.Context(), runaway.Estimate{})
		for _, err := range []error{
			beginErr, g.Close(t.Context()), g.Pause(""), g.Stop(runaway.ReasonOperator, ""),
			g.Resume(runaway.Approval{By: "a", Reason: "b"}),
		} {
			if !errors.Is(err, runaway.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if st := g.Status(); st.Attempts != 2 || st.Streak != 2 || name == "file" && (st.Head == "" ||
			st.Head == head || head == before) {
			t.Errorf("%s: %+v; the head was %q, then %q", name, st, before, head)
		}
	}
}

// TestSnapshotKeepsStop: a stop, a pause and used amendments are in a snapshot as well.
func TestSnapshotKeepsStop(t *testing.T) {
	t.Parallel()
	for name, store := range stores(t) {
		g := open(t, store(), runaway.Limits{}, nil)
		drive(t, g, failing)
		shut(t, g)
		o := amended("ada", "another generator", runaway.ReasonConsecutiveFailures)
		g = open(t, store(), runaway.Limits{}, o)
		runaway.SnapshotEvery(g, 1)
		it := begin(t, g)
		if err := errors.Join(g.Pause("lunch"), it.End(fresh(1))); err != nil {
			t.Fatal(err)
		}
		g = reopen(t, g, store(), runaway.Limits{}, nil)
		if st := g.Status(); st.Paused != "lunch" || st.Accepted != 1 {
			t.Errorf("%s: %+v", name, st)
		}
		if err := g.Resume(runaway.Approval{By: "ada", Reason: "eaten"}); err != nil {
			t.Fatal(err)
		}
		runaway.SnapshotEvery(g, 1)
		it = begin(t, g)
		if err := g.Stop(runaway.ReasonConsecutiveFailures, "by hand"); err != nil {
			t.Fatal(err)
		}
		stop := wantStop(t, it.End(rejected), runaway.ReasonConsecutiveFailures)
		shut(t, g)
		if again := refused(t, store(), runaway.Limits{}, o); *again != *stop {
			t.Errorf("%s: %+v, before %+v", name, again, stop)
		}
	}
}

// TestRateIsOfAWindow: what is spent slowly enough is no matter, and lifting the stop empties the window.
func TestRateIsOfAWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := runaway.UnsafeMemStore()
		l := runaway.Limits{
			Budget: runaway.Usage{Calls: 1000}, MaxRate: runaway.Usage{Calls: 10}, RateWindow: 10 * time.Minute,
		}
		spend := func(g *runaway.Governor, n int64) error {
			it := beginWith(t, g, runaway.Estimate{Calls: n})
			defer func() { _ = it.End(accepted) }()
			return it.Spend(runaway.Usage{Calls: n})
		}
		g := open(t, s, l, metered)
		for i := range 20 {
			if err := spend(g, 10); err != nil {
				t.Fatalf("%d: %v", i, err)
			}
			if got := g.Status().SpentInWindow.Calls; got != 10 {
				t.Errorf("%d in the window", got)
			}
			time.Sleep(10*time.Minute + 11*time.Second) // the window is up to a sixtieth longer
			if i == 10 {
				g = reopen(t, g, s, l, metered)
			}
		}
		if err := spend(g, 10); err != nil {
			t.Fatal(err)
		}
		time.Sleep(9 * time.Minute)
		wantStop(t, spend(g, 1), runaway.ReasonRate)
		shut(t, g)
		g = open(t, s, l, amended("ada", "found it", runaway.ReasonRate))
		if err := spend(g, 10); err != nil || g.Status().Spent.Calls != 221 {
			t.Errorf("%v, %+v", err, g.Status())
		}
	})
}

func TestMicro(t *testing.T) {
	t.Parallel()
	for m, want := range map[runaway.Micro]string{
		0: "0.000000", 1_250_000: "1.250000", -1: "-0.000001", math.MaxInt64: "9223372036854.775807",
		math.MinInt64: "-9223372036854.775808",
	} {
		if got := m.String(); got != want {
			t.Errorf("%d: %s, want %s", int64(m), got, want)
		}
	}
}
