// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"errors"
	"testing"

	"github.com/evoseal/containment/runaway"
)

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
