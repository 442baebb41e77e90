// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/executortest"
)

// runs is an executor that is nothing but its Run.
type runs func(context.Context) (*executor.Result, error)

func (runs) Capabilities() executor.Capability { return executor.CleanEnv }

func (r runs) Run(ctx context.Context, _ executor.Spec) (*executor.Result, error) { return r(ctx) }

// A run has seconds, whatever time the verification has; one that takes longer ends it, with or without a result.
func TestGuardBoundsRuns(t *testing.T) {
	t.Parallel()
	stuck := make(chan struct{})
	defer close(stuck)
	done := &executor.Result{Enforced: []executor.Enforcement{{Limit: "Wall\x00", By: executor.ByNone}}}
	for name, tc := range map[string]struct {
		run  runs
		want error
	}{
		"in time":           {func(context.Context) (*executor.Result, error) { return done, nil }, nil},
		"fails in time":     {func(context.Context) (*executor.Result, error) { return nil, executor.ErrLost }, nil},
		"heeds its context": {func(ctx context.Context) (*executor.Result, error) { <-ctx.Done(); return done, nil }, ErrTimeout},
		"does not return":   {func(context.Context) (*executor.Result, error) { <-stuck; return done, nil }, ErrHung},
		"panics":            {func(context.Context) (*executor.Result, error) { panic(1) }, ErrPanicked},
	} {
		g, err := newGuard(t.Context(), tc.run)
		if err != nil {
			t.Fatal(err)
		}
		g.limit = 100 * time.Millisecond
		if tc.want == nil {
			g.limit = 0
		}
		res, err := g.Run(t.Context(), executor.Spec{})
		if tc.want == nil && g.tripped() != nil || tc.want != nil && (res != nil || !errors.Is(g.tripped(), tc.want)) {
			t.Errorf("%s: %v, %v, tripped by %v", name, res, err, g.tripped())
		}
		if tc.want == nil {
			continue
		}
		if _, err := g.Run(t.Context(), executor.Spec{}); !errors.Is(err, tc.want) {
			t.Errorf("%s: and then %v", name, err)
		}
	}
}

// A probe without a verdict is made again, one that broke is not, and neither is anything if there are many.
func TestAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		inconclusive int
		made         int
	}{"none": {0, 0}, "one": {1, 1}, "few": {4, 4}, "many": {5, 0}} {
		made := 0
		check := func(context.Context, executor.Executor) error { made++; return nil }
		v := &verification{options: (*VerifyOptions)(nil).withDefaults(), guard: &guard{}}
		cases := []executortest.Case{{Name: "broken", Check: check}, {Name: "held", Check: check}}
		v.report.Probes = []Probe{{Control: Broken, Result: Broken}, {Control: Broken, Result: Held}}
		for range tc.inconclusive {
			cases = append(cases, executortest.Case{Name: "open", Check: check})
			v.report.Probes = append(v.report.Probes, Probe{Control: Broken})
		}
		v.again(t.Context(), cases)
		if made != tc.made || v.report.Probes[0].Result != Broken {
			t.Errorf("%s: %d were made again: %+v", name, made, v.report.Probes)
		}
	}
}
