// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evoseal/containment/runaway"
)

// limitRow shows that a field of Limits bites: with the field set, the run ends with want, and with the field
// omitted, the same run does not, unless nothing is the default.
type limitRow struct {
	limits    runaway.Limits
	run       func(t *testing.T, g *runaway.Governor, restart func() *runaway.Governor) error
	want      error          // a sentinel
	reason    runaway.Reason // for ErrStopped
	zeroBites bool           // omitted, it allows nothing
}

const none = runaway.NoLimit

var free = runaway.Usage{Tokens: none, Cost: none, Calls: none, CPU: none}

// start is when the clock of synctest begins.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func limitRows() map[string]limitRow {
	rows := map[string]limitRow{
		"Iterations": {limits: runaway.Limits{Iterations: 3}, run: repeat(3, fresh),
			reason: runaway.ReasonCompleted},
		"MaxIterations": {limits: runaway.Limits{MaxIterations: 3}, run: repeat(3, fresh),
			reason: runaway.ReasonIterations},
		"MaxConsecutiveFailures": {limits: runaway.Limits{MaxConsecutiveFailures: 3}, run: repeat(3, failing),
			reason: runaway.ReasonConsecutiveFailures},
		"FailureWindow": {limits: runaway.Limits{FailureWindow: 10, MaxConsecutiveFailures: 99},
			run: repeat(9, failing), reason: runaway.ReasonFailureRate},
		"MaxFailures": {limits: runaway.Limits{MaxFailures: 8}, run: repeat(10, mostlyFailing(5)),
			reason: runaway.ReasonFailureRate},
		"MaxSameClass": {limits: runaway.Limits{MaxSameClass: 4}, run: repeat(5, classFailing),
			reason: runaway.ReasonSameClass},
		"MaxDuplicates": {limits: runaway.Limits{MaxDuplicates: 4}, run: repeat(5, duplicates),
			reason: runaway.ReasonDuplicates},
		"MaxCycle": {limits: runaway.Limits{MaxCycle: 6}, run: repeat(30, period(6)),
			reason: runaway.ReasonOscillation},
		"NoImprovement": {limits: runaway.Limits{NoImprovement: 3}, run: repeat(5, scores(0)),
			reason: runaway.ReasonNoImprovement},
		"MinDelta": {limits: runaway.Limits{MinDelta: 1}, run: repeat(101, scores(0.001)),
			reason: runaway.ReasonNoImprovement},
		"MaxNeutral": {limits: runaway.Limits{MaxNeutral: 3}, run: repeat(3,
			func(int) runaway.Outcome { return neutral }), reason: runaway.ReasonNeutralRow},
		"PerIteration": {limits: runaway.Limits{PerIteration: time.Minute}, run: age(2 * time.Minute),
			want: runaway.ErrLost},
		"Wall": {limits: runaway.Limits{Wall: time.Hour}, run: age(30 * time.Minute),
			reason: runaway.ReasonWall},
		"Idle": {limits: runaway.Limits{Idle: time.Minute}, run: age(time.Minute),
			reason: runaway.ReasonIdle},
		"Deadline": {limits: runaway.Limits{Deadline: start.Add(time.Hour)}, run: age(30 * time.Minute),
			reason: runaway.ReasonDeadline},
		"MaxConcurrent": {limits: runaway.Limits{MaxConcurrent: 2}, run: crowd, want: errTwo},
		"MaxDepth":      {limits: runaway.Limits{MaxDepth: 1}, run: nest(2), want: runaway.ErrInvalidOptions},
		"RateWindow": {
			limits: runaway.Limits{RateWindow: 3 * time.Hour, Idle: none, Budget: free,
				MaxRate: runaway.Usage{Tokens: 100}},
			run: pay(runaway.Usage{Tokens: 60}, 2*time.Hour), reason: runaway.ReasonRate,
		},
		"Budget.Unpriced": {limits: runaway.Limits{Budget: runaway.Usage{Unpriced: true}},
			want: runaway.ErrInvalidLimits},
		"MaxRate.Unpriced": {limits: runaway.Limits{MaxRate: runaway.Usage{Unpriced: true}},
			want: runaway.ErrInvalidLimits},
	}
	for name, row := range map[string]limitRow{
		"Tokens": {limits: runaway.Limits{Budget: runaway.Usage{Tokens: 100}}, run: pay(runaway.Usage{Tokens: 60}, 0),
			reason: runaway.ReasonTokens},
		"Cost": {limits: runaway.Limits{Budget: runaway.Usage{Cost: 100}}, run: pay(runaway.Usage{Cost: 60}, 0),
			reason: runaway.ReasonCost},
		"Calls": {limits: runaway.Limits{Budget: runaway.Usage{Calls: 100}}, run: pay(runaway.Usage{Calls: 60}, 0),
			reason: runaway.ReasonCalls},
		"CPU": {limits: runaway.Limits{Budget: runaway.Usage{CPU: 100}}, run: pay(runaway.Usage{CPU: 60}, 0),
			reason: runaway.ReasonCPU},
	} {
		rate := row
		rate.limits = runaway.Limits{Budget: free, MaxRate: row.limits.Budget}
		rate.reason = runaway.ReasonRate
		rows["MaxRate."+name] = rate
		row.zeroBites = true
		row.limits.Budget = other(row.limits.Budget)
		rows["Budget."+name] = row
	}
	return rows
}

// leaves are the fields of Limits and of the structures of this package in it.
func leaves(v reflect.Value, prefix string) map[string]reflect.Value {
	all := map[string]reflect.Value{}
	for i := range v.NumField() {
		name, field := prefix+v.Type().Field(i).Name, v.Field(i)
		if field.Type() == reflect.TypeFor[runaway.Usage]() {
			maps.Copy(all, leaves(field, name+"."))
		} else {
			all[name] = field
		}
	}
	return all
}

// The row is complete when every field has one: a field without effect fails here.
func TestEveryLimit(t *testing.T) {
	t.Parallel()
	rows := limitRows()
	fields := leaves(reflect.ValueOf(runaway.Limits{}), "")
	if got, want := slices.Sorted(maps.Keys(rows)), slices.Sorted(maps.Keys(fields)); !slices.Equal(got, want) {
		t.Fatalf("rows for %v, fields %v", got, want)
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { row.check(t, row.limits, true) })
			if row.run == nil {
				return
			}
			synctest.Test(t, func(t *testing.T) {
				omitted := row.limits
				field := leaves(reflect.ValueOf(&omitted).Elem(), "")[name]
				field.SetZero()
				row.check(t, omitted, row.zeroBites)
			})
		})
	}
}

// check runs the row and demands that its limit bites, or that it does not.
func (row limitRow) check(t *testing.T, l runaway.Limits, bites bool) {
	t.Helper()
	s, o := runaway.UnsafeMemStore(), &runaway.Options{Metered: runaway.MeterAll}
	g, err := runaway.Open(t.Context(), runID, l, s, o)
	if row.run == nil {
		if !errors.Is(err, row.want) {
			t.Errorf("open: %v, want %v", err, row.want)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	restart := func() *runaway.Governor {
		shut(t, g)
		if g, err = runaway.Open(t.Context(), runID, l, s, o); err != nil {
			t.Fatalf("restart: %v", err)
		}
		return g
	}
	defer func() { _ = g.Close(context.Background()) }()
	err = row.run(t, g, restart)
	stop, _ := errors.AsType[*runaway.StopError](err)
	switch {
	case !bites && row.reason != 0 && stop != nil && stop.Reason == row.reason,
		!bites && row.want != nil && errors.Is(err, row.want):
		t.Errorf("it bites where it is omitted: %v", err)
	case bites && row.reason != 0 && (stop == nil || stop.Reason != row.reason):
		t.Errorf("%v, want a stop for %v", err, row.reason)
	case bites && row.reason == 0 && !errors.Is(err, row.want):
		t.Errorf("%v, want %v", err, row.want)
	}
}
