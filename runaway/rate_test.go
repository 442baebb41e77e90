// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"testing"
	"time"

	"github.com/evoseal/containment/runaway"
)

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
