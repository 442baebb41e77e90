// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"context"
	"errors"
	"time"

	"github.com/evoseal/containment/executor"
)

// leakTime is for some fifty runs, each of which may be a box that is made and removed: two seconds for each.
const leakTime = 2 * deadline

// leak makes runs that end in every way and compares what the host holds before and after. The first round is not
// counted: pools and caches may fill. What every run leaves is seen after one more; the others are for what only some do.
func leak(s *scene) error {
	const rounds = 4
	if err := mixedRuns(s); err != nil {
		return err
	}
	places := leakPlaces(s)
	groups, err := runGroups(s)
	if err != nil {
		return err
	}
	before := takeInventory(s.tag, places, groups)
	for range rounds {
		if err := mixedRuns(s); err != nil {
			return err
		}
	}
	after := takeInventory(s.tag, places, groups)
	var diff string
	eventually(8*time.Second, func() bool {
		diff = before.exceededBy(after, takeInventory(s.tag, places, groups))
		return diff == ""
	})
	if diff != "" {
		return s.breach("after %d rounds of runs there is more than before: %s", rounds, diff)
	}
	return nil
}

// mixedRuns ends runs in nine ways and demands that they end in these ways: runs that did not happen leak nothing.
func mixedRuns(s *scene) error {
	type want struct {
		executor.Spec
		executor.Cause
	}
	wall, flood, missing := s.plainSpec("sleep", "5000"), s.spec("flood", job{Name: "out", N: 2 << 20}), s.plainSpec("reach")
	wall.Limits.Wall, flood.Limits.Output, missing.Args[0] = 60*time.Millisecond, 64<<10, "./missing"
	runs := []want{
		{s.plainSpec("exit", "0"), executor.CauseExited}, {s.plainSpec("exit", "3"), executor.CauseExited},
		{s.plainSpec("signal", "9"), executor.CauseSignalled}, {wall, executor.CauseWallTimeout},
		{s.plainSpec("no-such-payload"), executor.CauseExited}, {flood, executor.CauseOutputLimit},
		{s.spec("forks", forkJob("detach deaf close", 2)), executor.CauseExited}, {missing, executor.CauseNotFound},
	}
	if !s.ex.Capabilities().Has(executor.OutputBounded) {
		runs[5].Spec = s.plainSpec("both")
		runs[5].Cause = executor.CauseExited
	}
	if !s.ex.Capabilities().Has(executor.TreeKilled) {
		runs[6].Spec = s.plainSpec("noop") // what it would leave is no promise of this executor
	}
	for _, r := range runs {
		r.Label = "executortest-" + s.tag
		res, err := s.run(r.Spec)
		if err != nil {
			return err
		}
		if res.Cause != r.Cause {
			return s.breach("a run that ends by %v gave %s", r.Cause, describe(res))
		}
	}
	ctx, cancel := context.WithTimeout(s.ctx, 60*time.Millisecond)
	defer cancel()
	if _, err := s.ex.Run(ctx, s.plainSpec("sleep", "5000")); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return inconclusive(s.name, "cancelled run: %w", err)
	}
	return nil
}
