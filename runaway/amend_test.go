// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/evoseal/containment/runaway"
)

func amended(by, reason string, lift runaway.Reason) *runaway.Options {
	return &runaway.Options{Metered: runaway.MeterAll, Amendment: &runaway.Amendment{By: by, Reason: reason,
		Lift: lift}}
}

// TestAmendment: a stop is lifted, and a limit raised, by somebody with a name, once.
func TestAmendment(t *testing.T) {
	t.Parallel()
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			small, large := runaway.Limits{MaxIterations: 3}, runaway.Limits{MaxIterations: 5}
			g := open(t, store(), small, nil)
			drive(t, g, fresh)
			shut(t, g)

			if stop := refused(t, store(), large, nil); stop.Reason != runaway.ReasonIterations {
				t.Errorf("larger limits without an amendment: %v", stop)
			}
			if stop := refused(t, store(), large, amended("eve", "more",
				runaway.ReasonWall)); stop.Reason != runaway.ReasonIterations {
				t.Errorf("another stop was lifted: %v", stop)
			}
			if stop := refused(t, store(), large, amended("eve", "more", 0)); stop.Reason != runaway.ReasonIterations {
				t.Errorf("no stop was to be lifted: %v", stop)
			}
			one := amended("ada", "two more", runaway.ReasonIterations)
			g = open(t, store(), large, one)
			if st := g.Status(); st.Attempts != 3 || st.Accepted != 3 || st.Stop != nil {
				t.Errorf("what was counted is not what it was: %+v", st)
			}
			if steps, stop := drive(t, g, fresh); steps != 2 || stop.Reason != runaway.ReasonIterations {
				t.Errorf("%d more, then %v", steps, stop)
			}
			shut(t, g)
			if stop := refused(t, store(), runaway.Limits{MaxIterations: 9},
				one); stop.Reason != runaway.ReasonIterations {
				t.Errorf("the amendment served twice: %v", stop)
			}
			g = open(t, store(), runaway.Limits{MaxIterations: 6}, amended("ada", "one more", runaway.ReasonIterations))
			g = reopen(t, g, store(), runaway.Limits{MaxIterations: 6}, amended("ada", "one more",
				runaway.ReasonIterations)) // nothing to amend
			if steps, _ := drive(t, g, fresh); steps != 1 {
				t.Errorf("%d more", steps)
			}
		})
	}
}

func TestLoosening(t *testing.T) {
	t.Parallel()
	s := runaway.UnsafeMemStore()
	loose, tight := runaway.Limits{MaxIterations: 10}, runaway.Limits{MaxIterations: 4}
	shut(t, open(t, s, loose, nil))
	shut(t, open(t, s, tight, nil)) // tightening is free, and the tighter limits are now those to compare with
	if _, err := runaway.Open(t.Context(), runID, loose, s, nil); !errors.Is(err, runaway.ErrLimitsLoosened) {
		t.Errorf("loosened: %v", err)
	}
	shut(t, open(t, s, loose, amended("ada", "as it was", 0)))
	shut(t, open(t, s, tight, nil))
	if _, err := runaway.Open(t.Context(), runID, loose, s, amended("ada", "as it was", 0)); !errors.Is(err,
		runaway.ErrLimitsLoosened) {
		t.Errorf("an amendment served twice: %v", err)
	}
	g := open(t, s, loose, amended("ada", "as it was, again", 0))
	if got := g.Status().Limits.MaxIterations; got != 10 {
		t.Errorf("the cap is %d", got)
	}
}

// TestLifting starts the count anew that led to the stop, and no other. What was spent stays spent.
func TestLifting(t *testing.T) {
	t.Parallel()
	l := runaway.Limits{
		MaxConsecutiveFailures: 3, MaxFailures: 6, MaxSameClass: 4, MaxDuplicates: 2, MaxNeutral: 2, MaxCycle: 2,
		NoImprovement: 15,
		Budget:        runaway.Usage{Tokens: none},
	}
	for reason, next := range map[runaway.Reason]func(n int) runaway.Outcome{
		runaway.ReasonConsecutiveFailures: failing,
		runaway.ReasonFailureRate: func(n int) runaway.Outcome {
			if n%3 == 0 {
				return fresh(n)
			}
			return runaway.Outcome{Class: fmt.Sprint(n)}
		},
		runaway.ReasonSameClass: func(n int) runaway.Outcome {
			if n%2 == 0 {
				return fresh(n)
			}
			return runaway.Outcome{Class: "x"}
		},
		runaway.ReasonDuplicates:    func(n int) runaway.Outcome { return runaway.Outcome{Kind: runaway.Duplicate} },
		runaway.ReasonOscillation:   period(2),
		runaway.ReasonNoImprovement: scores(0),
		runaway.ReasonNeutralRow:    func(int) runaway.Outcome { return neutral },
	} {
		s := runaway.UnsafeMemStore()
		g := open(t, s, l, nil)
		steps, stop := drive(t, g, next)
		if stop.Reason != reason {
			t.Errorf("%v: %v after %d steps", reason, stop, steps)
			continue
		}
		shut(t, g)
		g = open(t, s, l, amended("ada", "changed the generator", reason))
		once(t, g, fresh(1000))
		if st := g.Status(); st.Attempts != steps+1 || st.Stop != nil {
			t.Errorf("%v: %+v", reason, st)
		}
	}
}

func TestApprovalNeedsText(t *testing.T) {
	t.Parallel()
	g := open(t, runaway.UnsafeMemStore(), runaway.Limits{}, nil)
	if err := g.Pause(""); err != nil || g.Status().Paused == "" {
		t.Fatal(err)
	}
	for _, a := range []runaway.Approval{{}, {By: "a"}, {Reason: "b"}, {By: "\t", Reason: "b"}, {By: "\xff",
		Reason: "b"}, {By: string(make([]byte, 257)), Reason: "b"}} {
		if err := g.Resume(a); !errors.Is(err, runaway.ErrUnapproved) || g.Status().Paused == "" {
			t.Errorf("%+v: %v", a, err)
		}
	}
	for range 2 { // the second has nothing to do
		if err := g.Resume(runaway.Approval{By: "ada", Reason: "looked at it"}); err != nil || g.Status().Paused != "" {
			t.Error(err)
		}
	}
}
