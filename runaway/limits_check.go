// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"fmt"
	"math"
)

// The largest values that memory has to be kept for.
const (
	largestWindow     = 10_000
	largestCycle      = 100
	largestConcurrent = 1 << 16
	largestDepth      = 16
)

// check returns everything that is wrong with limits as the host gave them, before defaults.
func (l Limits) check(m Meter) (errs []error) {
	bad := func(field, rule string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: %s %s", ErrInvalidLimits, field, fmt.Sprintf(rule, args...)))
	}
	atLeast := func(field string, value, least int64, unlimited string) {
		if value < least {
			bad(field, "is %d; %s", value, unlimited)
		}
	}
	const never = "it cannot be negative, and there is no way to switch it off"
	const possible = "the only negative value is NoLimit"
	for _, f := range []struct {
		name  string
		value int
	}{
		{"Iterations", l.Iterations}, {"MaxIterations", l.MaxIterations},
		{"MaxConsecutiveFailures", l.MaxConsecutiveFailures}, {"FailureWindow", l.FailureWindow},
		{"MaxNeutral", l.MaxNeutral}, {"MaxCycle", l.MaxCycle}, {"MaxConcurrent", l.MaxConcurrent}, {"MaxDepth",
			l.MaxDepth},
	} {
		atLeast(f.name, int64(f.value), 0, never)
	}
	for _, f := range []struct {
		name  string
		value int
	}{
		{"MaxFailures", l.MaxFailures}, {"MaxSameClass", l.MaxSameClass}, {"MaxDuplicates", l.MaxDuplicates},
		{"NoImprovement", l.NoImprovement},
	} {
		atLeast(f.name, int64(f.value), NoLimit, possible)
	}
	atLeast("RateWindow", int64(l.RateWindow), 0, never)
	atLeast("PerIteration", int64(l.PerIteration), 0, never)
	atLeast("Wall", int64(l.Wall), NoLimit, possible)
	atLeast("Idle", int64(l.Idle), NoLimit, possible)

	for _, f := range []struct {
		name        string
		value, most int
	}{
		{"FailureWindow", l.FailureWindow, largestWindow}, {"MaxCycle", l.MaxCycle, largestCycle},
		{"MaxConcurrent", l.MaxConcurrent, largestConcurrent}, {"MaxDepth", l.MaxDepth, largestDepth},
	} {
		if f.value > f.most {
			bad(f.name, "is %d; the largest is %d", f.value, f.most)
		}
	}
	if l.MaxCycle == 1 {
		bad("MaxCycle", "is 1; the shortest period is 2")
	}
	if full := l.withDefaults(); l.FailureWindow >= 0 && full.MaxFailures > full.FailureWindow {
		bad("MaxFailures", "is %d of %d and would never be reached; make FailureWindow larger, or write NoLimit",
			full.MaxFailures, full.FailureWindow)
	}
	if math.IsNaN(l.MinDelta) || math.IsInf(l.MinDelta, 0) || l.MinDelta < 0 {
		bad("MinDelta", "is %v; it must be a number from 0", l.MinDelta)
	}
	if y := l.Deadline.Year(); y > 9999 { // RFC 3339 ends there, and with it the journal
		bad("Deadline", "is in the year %d; the last one is 9999", y)
	}
	return append(append(errs, checkBudget("Budget", l.Budget, m)...), checkBudget("MaxRate", l.MaxRate, m)...)
}

// checkBudget looks at one of the two limits that are a Usage.
func checkBudget(field string, u Usage, m Meter) (errs []error) {
	a := u.amounts()
	for kind, b := range budgets {
		switch {
		case a[kind] < NoLimit:
			errs = append(errs, fmt.Errorf("%w: %s, %s: is %d; the only negative value is NoLimit",
				ErrInvalidLimits, field, b.name, a[kind]))
		case a[kind] > 0 && m&b.meter == 0:
			errs = append(errs, fmt.Errorf("%w: %s, %s: add its meter to Options.Metered and report it with Spend, "+
				"or write NoLimit", ErrUnmetered, field, b.name))
		}
	}
	if u.Unpriced {
		errs = append(errs, fmt.Errorf("%w: %s: Unpriced is something to report, not a limit", ErrInvalidLimits, field))
	}
	return errs
}
