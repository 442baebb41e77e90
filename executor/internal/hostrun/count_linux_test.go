// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/supervise"
)

// TestWhatEndedBetweenTwoSamplesCounts: without cgroups the samples miss processes that came and went, and the sum that
// the kernel made of those that were waited for misses the others. The larger one decides.
func TestWhatEndedBetweenTwoSamplesCounts(t *testing.T) {
	t.Parallel()
	const limit = 300 * time.Millisecond
	for name, c := range map[string]struct {
		sampled, waited, want time.Duration
		by                    executor.Mechanism
	}{
		"nothing of it was sampled":  {0, 2 * limit, 2 * limit, executor.ByRusage},
		"little of it was sampled":   {limit / 2, 2 * limit, 2 * limit, executor.ByRusage},
		"it was not waited for":      {2 * limit, limit / 2, 2 * limit, executor.BySupervisor},
		"neither is above the limit": {limit / 3, limit / 2, limit / 2, executor.ByRusage},
	} {
		tree := &supervise.Event{User: int64(c.waited / 2), System: int64(c.waited - c.waited/2)}
		f := Facts{Ending: Ending{CPU: c.sampled, Tree: tree}, Limits: executor.Limits{CPU: limit}.WithDefaults()}
		var u executor.Usage
		if err := (&Run{Host: &Host{}}).count(&f, &u); err != nil {
			t.Fatal(err)
		}
		if f.CPU != c.want || f.CPUBy != c.by {
			t.Errorf("%s: %v by %v, want %v by %v", name, f.CPU, f.CPUBy, c.want, c.by)
		}
	}
}
