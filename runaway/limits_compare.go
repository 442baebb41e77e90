// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// looser returns what these limits allow and the other ones do not, as texts for a person. Both have their defaults.
// Every field of Limits is compared here; a test over its fields sees to that.
func (l Limits) looser(than Limits) (fields []string) {
	more := func(name string, now, before int64) {
		if unbounded(now) > unbounded(before) {
			fields = append(fields, fmt.Sprintf("%s from %d to %d", name, before, now))
		}
	}
	num := func(name string, now, before int) { more(name, int64(now), int64(before)) }
	less := func(name string, now, before int) {
		if now < before {
			fields = append(fields, fmt.Sprintf("%s from %d to %d", name, before, now))
		}
	}
	dur := func(name string, now, before time.Duration) {
		if unbounded(int64(now)) > unbounded(int64(before)) {
			fields = append(fields, fmt.Sprintf("%s from %v to %v", name, before, now))
		}
	}
	num("Iterations", l.cap(), than.cap())
	num("MaxIterations", l.MaxIterations, than.MaxIterations)
	num("MaxConsecutiveFailures", l.MaxConsecutiveFailures, than.MaxConsecutiveFailures)
	less("FailureWindow", l.FailureWindow, than.FailureWindow) // fewer iterations hold fewer failures
	num("MaxFailures", l.MaxFailures, than.MaxFailures)
	num("MaxSameClass", l.MaxSameClass, than.MaxSameClass)
	num("MaxDuplicates", l.MaxDuplicates, than.MaxDuplicates)
	less("MaxCycle", l.MaxCycle, than.MaxCycle) // shorter periods are fewer periods
	num("NoImprovement", l.NoImprovement, than.NoImprovement)
	num("MaxNeutral", l.MaxNeutral, than.MaxNeutral)
	num("MaxConcurrent", l.MaxConcurrent, than.MaxConcurrent)
	num("MaxDepth", l.MaxDepth, than.MaxDepth)
	if l.MinDelta < than.MinDelta {
		fields = append(fields, fmt.Sprintf("MinDelta from %v to %v", than.MinDelta, l.MinDelta))
	}
	budget, rate := l.Budget.amounts(), l.MaxRate.amounts()
	for kind, b := range budgets {
		more("Budget, "+b.name, budget[kind], than.Budget.amounts()[kind])
		more("MaxRate, "+b.name, rate[kind], than.MaxRate.amounts()[kind])
	}
	if l.RateWindow < than.RateWindow { // the same amount, sooner again
		fields = append(fields, fmt.Sprintf("RateWindow from %v to %v", than.RateWindow, l.RateWindow))
	}
	dur("PerIteration", l.PerIteration, than.PerIteration)
	dur("Wall", l.Wall, than.Wall)
	dur("Idle", l.Idle, than.Idle)
	if compareDeadline(l.Deadline, than.Deadline) > 0 {
		fields = append(fields, fmt.Sprintf("Deadline from %v to %v", than.Deadline, l.Deadline))
	}
	return fields
}

// unbounded makes NoLimit the largest value there is.
func unbounded(v int64) int64 {
	if v == NoLimit {
		return math.MaxInt64
	}
	return v
}

func (a amounts) unbounded() amounts {
	for k, v := range a {
		a[k] = unbounded(v)
	}
	return a
}

// compareDeadline orders deadlines by how late they are; none is the latest.
func compareDeadline(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return cmp.Compare(btoi(a.IsZero()), btoi(b.IsZero()))
	}
	return a.Compare(b)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
