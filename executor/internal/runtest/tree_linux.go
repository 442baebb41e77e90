// SPDX-License-Identifier: Apache-2.0

package runtest

import (
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
)

// big is a tree of 60 processes that ignore every polite signal, half of them in sessions of their own, all with the
// run's output open.
const big = `
trap "" TERM HUP INT QUIT
for i in $(seq 30); do
	sh -c 'trap "" TERM HUP INT; while :; do sleep 100; done' &
	setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 100; done' &
done
echo begun
while :; do sleep 100; done`

func bigSpec(t testing.TB, wall time.Duration) executor.Spec {
	return executor.Spec{
		Args: []string{"sh", "-c", big}, Workspace: t.TempDir(),
		Limits: executor.Limits{Wall: wall, Processes: 300, CPUs: 2},
	}
}

// TreeAtTheDeadline lets the big tree run into its wall limit. On a busy machine it takes longer to grow, and the limit is
// raised until it is there.
func TreeAtTheDeadline(t *testing.T, ex executor.Executor, state string) {
	t.Helper()
	for wall := time.Second; ; wall *= 2 {
		r, err := ex.Run(t.Context(), bigSpec(t, wall))
		if err != nil {
			t.Fatal(err)
		}
		TracesGone(t, state)
		if begun := strings.Contains(r.Stdout.String(), "begun"); !begun && wall < 15*time.Second {
			continue
		} else if r.Cause != executor.CauseWallTimeout || !begun {
			t.Fatalf("cause %v, output %q, stderr %q", r.Cause, r.Stdout.String(), r.Stderr.String())
		}
		late := r.Usage.Wall - wall + r.Timing.Teardown
		t.Logf("result %v after the deadline", late)
		// The figure is measured by the benchmark; here only what would be a broken promise on any machine.
		if late > 5*time.Second {
			t.Errorf("result %v after the deadline", late)
		}
		return
	}
}

// BenchmarkTreeAtTheDeadline reports how long after its deadline the result of the big tree is there.
func BenchmarkTreeAtTheDeadline(b *testing.B, ex executor.Executor) {
	b.Helper()
	const wall = 400 * time.Millisecond
	spec := bigSpec(b, wall)
	var late []time.Duration
	for b.Loop() {
		r, err := ex.Run(b.Context(), spec)
		if err != nil || r.Cause != executor.CauseWallTimeout {
			b.Fatal(r, err)
		}
		late = append(late, r.Usage.Wall-wall+r.Timing.Teardown)
	}
	b.ReportMetric(float64(Median(late).Microseconds())/1000, "ms-late")
}
