// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/evoseal/containment/runaway"
)

func TestOscillation(t *testing.T) {
	t.Parallel()
	for k := 1; k <= 7; k++ {
		g := open(t, runaway.UnsafeMemStore(), runaway.Limits{MaxIterations: 60}, nil)
		steps, stop := drive(t, g, period(k))
		want, reason := 5*k, runaway.ReasonOscillation
		switch {
		case k == 1:
			want = 10 // the same head again and again has the period 2 as well
		case k > 5:
			want, reason = 60, runaway.ReasonIterations
		}
		if steps != want || stop.Reason != reason {
			t.Errorf("period %d: %d steps, then %v", k, steps, stop)
		}
	}
	// A period that begins after other heads, with outcomes in between that accept nothing.
	g := open(t, runaway.UnsafeMemStore(), runaway.Limits{MaxIterations: 900}, nil)
	_, stop := drive(t, g, func(n int) runaway.Outcome {
		switch {
		case n <= 100:
			return fresh(-n)
		case n%3 == 0 && n < 110:
			return rejected
		case n%2 == 0:
			return neutral
		}
		return fresh(n / 2 % 4)
	})
	if stop.Reason != runaway.ReasonOscillation {
		t.Errorf("a late period: %v", stop)
	}
	// A long row of different heads is none.
	g = open(t, runaway.UnsafeMemStore(), runaway.Limits{MaxIterations: 900}, nil)
	if _, stop := drive(t, g,
		func(n int) runaway.Outcome { return fresh(n * n) }); stop.Reason != runaway.ReasonIterations {
		t.Errorf("different heads: %v", stop)
	}
}

// TestSeen: a known variant makes its iteration a duplicate, also after a restart.
func TestSeen(t *testing.T) {
	t.Parallel()
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := open(t, store(), runaway.Limits{}, nil)
			ask := func(f runaway.Fingerprint, want bool) *runaway.Iteration {
				t.Helper()
				it := begin(t, g)
				if seen, err := it.Seen(f); err != nil || seen != want {
					t.Errorf("seen %v, %v, want %v", seen, err, want)
				}
				return it
			}
			_ = ask(print("a"), false).End(rejected)
			_ = ask(print("b"), false).End(fresh(1))
			g = reopen(t, g, store(), runaway.Limits{}, nil)
			if err := ask(print("a"), true).End(fresh(2)); err != nil {
				t.Fatal(err)
			}
			if st := g.Status(); st.Duplicates != 1 || st.Streak != 1 || st.Accepted != 1 {
				t.Errorf("accepted although it was seen: %+v", st)
			}
			it := ask(print("a"), true)
			if seen, err := it.Seen(print("c")); seen || err != nil { // another try in the same iteration
				t.Errorf("%v, %v", seen, err)
			}
			if seen, err := it.Seen(runaway.Fingerprint{}); !seen || !errors.Is(err, runaway.ErrNoFingerprint) {
				t.Errorf("the zero fingerprint: %v, %v", seen, err)
			}
			if err := it.End(fresh(3)); err != nil || g.Status().Accepted != 2 {
				t.Errorf("%v, %+v", err, g.Status())
			}
		})
	}
}

func TestScores(t *testing.T) {
	t.Parallel()
	scored := func(s float64) runaway.Outcome {
		return runaway.Outcome{Kind: runaway.Accepted, Scored: true, Score: s}
	}
	lost := scored(9)
	lost.Kind = runaway.Rejected
	for name, c := range map[string]struct {
		delta float64
		in    []runaway.Outcome
		want  []int // SinceBetter after each
	}{
		"unscored": {0, []runaway.Outcome{accepted, rejected, accepted, neutral}, []int{0, 1, 0, 1}},
		"rising": {0, []runaway.Outcome{scored(1), scored(2), scored(2), scored(1), scored(3)}, []int{0,
			0, 1, 2, 0}},
		"negative": {0, []runaway.Outcome{scored(-5), scored(-6), scored(-4)}, []int{0, 1, 0}},
		"delta": {1, []runaway.Outcome{scored(1), scored(1.5), scored(2), scored(2.9), scored(3)},
			[]int{0, 1, 0, 1, 0}},
		"no score any more":  {0, []runaway.Outcome{scored(1), accepted, accepted}, []int{0, 1, 2}},
		"score of a failure": {0, []runaway.Outcome{lost, accepted, scored(1)}, []int{1, 2, 0}},
		"not a number": {0, []runaway.Outcome{accepted, scored(math.NaN()), scored(math.Inf(1)), accepted,
			scored(1)}, []int{0, 1, 2, 3, 0}},
		"huge": {0, []runaway.Outcome{scored(-math.MaxFloat64), scored(math.MaxFloat64)}, []int{0, 0}},
	} {
		for store, get := range stores(t) {
			l := runaway.Limits{MinDelta: c.delta}
			g := open(t, get(), l, nil)
			for i, o := range c.in {
				once(t, g, o)
				g = reopen(t, g, get(), l, nil)
				if got := g.Status().SinceBetter; got != c.want[i] {
					t.Errorf("%s, %s: %d after %d, want %d", name, store, got, i+1, c.want[i])
				}
			}
			shut(t, g)
		}
	}
}

// TestSameClass: acceptances do not end a row, other classes do, and no class does neither.
func TestSameClass(t *testing.T) {
	t.Parallel()
	class := func(c string) runaway.Outcome { return runaway.Outcome{Kind: runaway.Failed, Class: c} }
	g := open(t, runaway.UnsafeMemStore(), runaway.Limits{MaxConsecutiveFailures: 99, MaxSameClass: 4}, nil)
	for i, c := range []struct {
		o    runaway.Outcome
		want int
	}{
		{class("a"), 1}, {class("a"), 2}, {class("b"), 1}, {class("a"), 1}, {fresh(1), 1}, {class("a"), 2},
		{class(""), 2},
		{runaway.Outcome{Kind: runaway.Neutral, Class: "b"}, 2}, {class("a"), 3},
	} {
		once(t, g, c.o)
		if got := g.Status().SameClass; got != c.want {
			t.Errorf("%d: %d, want %d", i, got, c.want)
		}
	}
	wantStop(t, begin(t, g).End(class("a")), runaway.ReasonSameClass)
}

// TestFailureWindow: the oldest outcome leaves the window, and other limits keep what is in it.
func TestFailureWindow(t *testing.T) {
	t.Parallel()
	s := runaway.UnsafeMemStore()
	l := runaway.Limits{FailureWindow: 4, MaxFailures: 4}
	g := open(t, s, l, nil)
	for i, c := range []struct {
		o    runaway.Outcome
		want int
	}{{rejected, 1}, {rejected, 2}, {fresh(1), 2}, {neutral, 2}, {rejected, 3}, {rejected, 3}, {fresh(2), 2},
		{fresh(3), 2}, {rejected, 2}} {
		once(t, g, c.o)
		if got := g.Status().Failures; got != c.want {
			t.Errorf("%d: %d failures, want %d", i, got, c.want)
		}
	}
	l.FailureWindow = 6
	g = reopen(t, g, s, l, nil)
	for i, want := range []int{3, 4} { // two more fit in before the oldest goes
		if err := begin(t, g).End(rejected); (err != nil) != (i == 1) || g.Status().Failures != want {
			t.Errorf("%v, %d failures, want %d", err, g.Status().Failures, want)
		}
	}
}

func TestLongTexts(t *testing.T) {
	t.Parallel()
	for name, store := range stores(t) {
		g := open(t, store(), runaway.Limits{MaxConsecutiveFailures: 9}, nil)
		long := fmt.Sprintf("%0100000d\xff", 1)
		once(t, g, runaway.Outcome{Class: long})
		once(t, g, runaway.Outcome{Class: "\xff\xfe\x00\n\u2028\""})
		if err := errors.Join(g.Pause(long), g.Stop(runaway.ReasonOperator, long)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		shut(t, g)
		if stop := refused(t, store(), runaway.Limits{MaxConsecutiveFailures: 9}, nil); len(stop.Detail) != 1024 {
			t.Errorf("%s: a detail of %d bytes", name, len(stop.Detail))
		}
	}
}
