// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"errors"
	"testing"

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
