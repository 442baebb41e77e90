// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/evoseal/containment/executor"
)

// concurrencyCases hold for every executor: runs do not meet, and nothing remains.
func concurrencyCases() []Case {
	return []Case{
		check("parallel", "runs at the same time must not mix files, environments, output or results", 0, parallel),
		check("parallel-limits", "one run's limit must not end another run", 0, parallelLimits),
		alone(checkWithin(leakTime, "leak", "what one run leaves behind stops the host after ten thousand", 0, leak)),
	}
}

// parallel gives each of 24 runs its own workspace file, environment, input and exit code.
func parallel(s *scene) error {
	const n = 24
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			errs[i] = attempt(s.ctx, s.name, s.ex, false, func(one *scene) error { return oneOfMany(one, i) })
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// oneOfMany is one of the runs that parallel makes; everything about it is its own and checked.
func oneOfMany(s *scene, i int) error {
	text, value := randomHex(16), randomHex(16)
	if _, err := s.plant("ws/mine", text, 0o644); err != nil {
		return s.fault(err)
	}
	spec := s.spec("one-of-many", job{N: int64(i), Paths: []string{"mine"}})
	spec.Env = map[string]string{"EXECUTORTEST_MINE": value}
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	for kind, want := range map[string]string{"file": text, "env": value, "entries": "mine payload"} {
		if err := s.mustSay(res, kind, want); err != nil {
			return err
		}
	}
	if res.ExitCode != i || res.Cause != executor.CauseExited {
		return s.breach("exit %d became %s", i, describe(res))
	}
	return nil
}

// parallelLimits lets one run meet its time limit while others go on.
func parallelLimits(s *scene) error {
	const n = 6
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			errs[i] = attempt(s.ctx, s.name, s.ex, false, func(one *scene) error {
				spec := one.plainSpec("sleep", "700")
				if i%2 == 0 { // however long it takes until it sleeps, it sleeps for longer than it may
					spec = one.plainSpec("sleep", millis(2*patience))
					spec.Limits.Wall = 200 * time.Millisecond
				}
				res, err := one.reachInTime(spec)
				if err != nil {
					return err
				}
				if i%2 == 0 {
					return one.mustEnd(res, executor.CauseWallTimeout)
				}
				return one.mustOK(res)
			})
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// concurrencyPayload shows all by which a run could be taken for another.
func concurrencyPayload(p *payload) {
	p.reached()
	data, _ := os.ReadFile(p.job.Paths[0])
	p.say("file", string(data))
	p.say("env", os.Getenv("EXECUTORTEST_MINE"))
	p.say("entries", strings.Join(slices.Sorted(slices.Values(entryNames("."))), " "))
	exit(int(p.job.N))
}
