// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/evoseal/containment/runaway"
	"github.com/google/go-cmp/cmp"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	want := runaway.Limits{
		Iterations: 1000, MaxIterations: 1000, MaxConsecutiveFailures: 5, FailureWindow: 50, MaxFailures: 45,
		MaxSameClass: 10, MaxDuplicates: 100, MaxCycle: 5, NoImprovement: 100, MaxNeutral: 10, RateWindow: time.Hour,
		PerIteration: time.Hour, Wall: 24 * time.Hour, Idle: time.Hour, MaxConcurrent: 1, MaxDepth: 2,
	}
	if diff := cmp.Diff(want, open(t, runaway.UnsafeMemStore(), runaway.Limits{}, nil).Status().Limits); diff != "" {
		t.Errorf("nothing set (-want +got):\n%s", diff)
	}
	given := runaway.Limits{
		MaxIterations: 20, FailureWindow: 11, PerIteration: 3 * time.Hour, Budget: runaway.Usage{Tokens: 7, Cost: none},
		MaxRate: runaway.Usage{Cost: 3},
	}
	want.Iterations, want.MaxIterations, want.FailureWindow, want.MaxFailures = 20, 20, 11, 10
	want.PerIteration, want.Idle, want.Budget = 3*time.Hour, 3*time.Hour, given.Budget
	want.MaxRate = runaway.Usage{Tokens: 7, Cost: 3}
	g := open(t, runaway.UnsafeMemStore(), given, &runaway.Options{Metered: runaway.MeterAll})
	if diff := cmp.Diff(want, g.Status().Limits); diff != "" {
		t.Errorf("some set (-want +got):\n%s", diff)
	}
}

// TestLooser changes each field of Limits in the direction that allows more, and back: the first needs an amendment,
// and the second never does. A field that is forgotten in the comparison fails here.
func TestLooser(t *testing.T) {
	t.Parallel()
	base := runaway.Limits{
		Iterations: 50, MaxIterations: 100, MaxConsecutiveFailures: 10, FailureWindow: 20, MaxFailures: 10,
		MaxSameClass:  10,
		MaxDuplicates: 10, MaxCycle: 5, NoImprovement: 10, MinDelta: 1, MaxNeutral: 5,
		Budget:     runaway.Usage{Tokens: 10, Cost: 10, Calls: 10, CPU: 10},
		MaxRate:    runaway.Usage{Tokens: 5, Cost: 5, Calls: 5, CPU: 5},
		RateWindow: time.Hour, PerIteration: time.Minute, Wall: time.Hour, Idle: time.Hour,
		Deadline: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), MaxConcurrent: 2, MaxDepth: 2,
	}
	fewerIsLooser := map[string]bool{"FailureWindow": true, "MaxCycle": true, "MinDelta": true, "RateWindow": true}
	change := func(l runaway.Limits, name string, more bool) runaway.Limits {
		by := int64(1)
		if more == fewerIsLooser[name] {
			by = -1
		}
		switch f := leaves(reflect.ValueOf(&l).Elem(), "")[name]; v := f.Interface().(type) {
		case float64:
			f.SetFloat(v + float64(by)/2)
		case time.Time:
			f.Set(reflect.ValueOf(v.Add(time.Duration(by))))
		default:
			f.SetInt(f.Int() + by)
		}
		return l
	}
	unlimited := map[string]bool{
		"MaxFailures": true, "MaxSameClass": true, "MaxDuplicates": true, "NoImprovement": true, "Wall": true,
		"Idle":          true,
		"Budget.Tokens": true, "Budget.Cost": true, "Budget.Calls": true, "Budget.CPU": true,
		"MaxRate.Tokens": true, "MaxRate.Cost": true, "MaxRate.Calls": true, "MaxRate.CPU": true,
	}
	reopens := func(t *testing.T, from, to runaway.Limits) error {
		t.Helper()
		s, o := runaway.UnsafeMemStore(), &runaway.Options{Metered: runaway.MeterAll}
		shut(t, open(t, s, from, o))
		g, err := runaway.Open(t.Context(), runID, to, s, o)
		if err == nil {
			shut(t, g)
		}
		return err
	}
	for name := range leaves(reflect.ValueOf(base), "") {
		t.Run(name, func(t *testing.T) {
			if name == "Budget.Unpriced" || name == "MaxRate.Unpriced" {
				return // refused at once, as TestEveryLimit shows
			}
			if err := reopens(t, base, change(base, name, true)); !errors.Is(err, runaway.ErrLimitsLoosened) {
				t.Errorf("more: %v", err)
			}
			if err := reopens(t, base, change(base, name, false)); err != nil {
				t.Errorf("less: %v", err)
			}
			l := base
			f := leaves(reflect.ValueOf(&l).Elem(), "")[name]
			switch {
			case name == "Deadline":
				f.SetZero()
			case unlimited[name]:
				f.SetInt(none)
			default:
				return
			}
			if err := reopens(t, base, l); !errors.Is(err, runaway.ErrLimitsLoosened) {
				t.Errorf("no limit: %v", err)
			}
			if err := reopens(t, l, base); err != nil {
				t.Errorf("a limit again: %v", err)
			}
		})
	}
}

func TestConfigRefused(t *testing.T) {
	t.Parallel()
	type limits = runaway.Limits
	for name, c := range map[string]struct {
		id     string
		limits limits
		opts   runaway.Options
		want   []error
		count  int
	}{
		"negative": {limits: limits{Iterations: -1, MaxNeutral: -1, Wall: -2, MaxCycle: -1, MaxConcurrent: -1},
			count: 5},
		"no less": {limits: limits{MaxDuplicates: -2, NoImprovement: -2, MaxFailures: -2, MaxSameClass: -2,
			Idle: -2}, count: 5},
		"never off": {limits: limits{PerIteration: none, RateWindow: none, FailureWindow: none, MaxDepth: none},
			count: 4},
		"too large": {limits: limits{FailureWindow: 10_001, MaxCycle: 101, MaxConcurrent: 1<<16 + 1, MaxDepth: 17},
			count: 4},
		"never met":    {limits: limits{FailureWindow: 5, MaxFailures: 6}, count: 1},
		"period 1":     {limits: limits{MaxCycle: 1}, count: 1},
		"NaN":          {limits: limits{MinDelta: math.NaN()}, count: 1},
		"far away":     {limits: limits{Deadline: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}, count: 1},
		"Inf":          {limits: limits{MinDelta: math.Inf(1)}, count: 1},
		"negative sum": {limits: limits{Budget: runaway.Usage{Tokens: -2, Cost: -2, Calls: -2, CPU: -2}}, count: 4},
		"unmetered": {
			limits: limits{Budget: runaway.Usage{Tokens: 1, Cost: 1, Calls: 1, CPU: 1},
				MaxRate: runaway.Usage{Tokens: 1}},
			opts: runaway.Options{Metered: runaway.MeterCost},
			want: []error{runaway.ErrUnmetered}, count: 4,
		},
		"meter":   {opts: runaway.Options{Metered: 0x80}, want: []error{runaway.ErrInvalidOptions}, count: 1},
		"no id":   {id: "-", want: nil, count: 0},
		"path":    {id: "../x", want: []error{runaway.ErrInvalidOptions}, count: 1},
		"dot":     {id: ".x", want: []error{runaway.ErrInvalidOptions}, count: 1},
		"newline": {id: "x\n", want: []error{runaway.ErrInvalidOptions}, count: 1},
		"no approval": {opts: runaway.Options{Amendment: &runaway.Amendment{By: " "}},
			want: []error{runaway.ErrUnapproved}, count: 1},
		"odd lift": {opts: runaway.Options{Amendment: &runaway.Amendment{By: "a", Reason: "b", Lift: 99}},
			want: []error{runaway.ErrInvalidOptions}, count: 1},
		"no kill dir": {opts: runaway.Options{KillFile: "/no/such/dir/STOP"},
			want: []error{runaway.ErrInvalidOptions}, count: 1},
		"no tree": {opts: runaway.Options{KillFile: "/STOP", Tree: "/no/such/tree"},
			want: []error{runaway.ErrInvalidOptions}, count: 1},
		"all at once": {id: "a b", limits: limits{MaxIterations: -1, Budget: runaway.Usage{Calls: 1}},
			want: []error{runaway.ErrInvalidLimits, runaway.ErrUnmetered, runaway.ErrInvalidOptions}, count: 3},
		"valid, so far": {limits: limits{MaxFailures: none, MaxSameClass: none, MaxDuplicates: none, Wall: none,
			Idle: none, Budget: free, MaxRate: free}},
	} {
		id := c.id
		if id == "" {
			id = runID
		}
		g, err := runaway.Open(t.Context(), id, c.limits, runaway.UnsafeMemStore(), &c.opts)
		if c.count == 0 {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else {
				shut(t, g)
			}
			continue
		}
		config, ok := errors.AsType[*runaway.ConfigError](err)
		if !ok || !errors.Is(err, runaway.ErrConfig) || len(config.Problems) != c.count {
			t.Errorf("%s: %v, want %d problems", name, err, c.count)
		}
		if c.want == nil {
			c.want = []error{runaway.ErrInvalidLimits}
		}
		for _, want := range c.want {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
	}
	if _, err := runaway.Open(t.Context(), runID, limits{}, nil, nil); !errors.Is(err, runaway.ErrConfig) {
		t.Errorf("no store: %v", err)
	}
}

// foreign is a store that somebody else wrote.
type foreign struct{ runaway.Store }

func TestForeignStoreNeedsKillFile(t *testing.T) {
	t.Parallel()
	if _, err := runaway.Open(t.Context(), runID, runaway.Limits{}, foreign{runaway.UnsafeMemStore()},
		nil); !errors.Is(err, runaway.ErrInvalidOptions) {
		t.Errorf("a store without a directory: %v", err)
	}
	g, err := runaway.Open(t.Context(), runID, runaway.Limits{}, foreign{runaway.UnsafeMemStore()},
		&runaway.Options{KillFile: t.TempDir() + "/STOP"})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
