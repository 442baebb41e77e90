// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"math"
	"time"
)

// levels are the percentages of a limit at which there is a warning. EVOSEAL has the one at 80.
var levels = [...]int{50, 80, 95}

// warnings are the limits that can nearly be reached: the budgets, and two more.
const (
	warnIterations = kinds + iota
	warnWall
	warnKinds
)

var warnNames = [warnKinds]string{
	cost: "cost", tokens: "tokens", calls: "calls", cpu: "cpu", warnIterations: "iterations", warnWall: "wall",
}

// warned is how many levels each limit has reached in this session, and the value at which the next one is due.
type warned struct {
	levels [warnKinds]uint8
	next   [warnKinds]int64
}

// plan finds when the next warnings are due. Levels that are passed already were reported in an earlier session, or
// when a child last worked. run is the active time of the run.
func (s *scope) plan(run time.Duration) {
	s.warned = warned{}
	values := [warnKinds]int64{warnIterations: int64(s.Begun + s.Nested), warnWall: int64(s.active(run))}
	copy(values[:], s.Spent[:])
	for k, value := range values {
		for s.warned.next[k] = s.dueAt(k); s.passes(k, value); s.warned.next[k] = s.dueAt(k) {
			s.warned.levels[k]++
		}
	}
}

// passes reports whether a value is one to warn of. A sum without a limit may be as large as a number gets.
func (s *scope) passes(kind int, value int64) bool {
	return value >= s.warned.next[kind] && s.warned.next[kind] != math.MaxInt64
}

// dueAt is the value at which the next warning is due; math.MaxInt64 is never.
func (s *scope) dueAt(kind int) int64 {
	var limit int64
	switch kind {
	case warnIterations:
		limit = int64(s.Limits.cap())
	case warnWall:
		limit = unbounded(int64(s.Limits.Wall))
	default:
		limit = s.most[kind]
	}
	if limit == 0 || limit == math.MaxInt64 || int(s.warned.levels[kind]) == len(levels) {
		return math.MaxInt64
	}
	return int64(math.Ceil(float64(limit) * (float64(levels[s.warned.levels[kind]]) / 100)))
}

// warn reports limits that are nearly reached, of a governor and those above. Each level is reported once in a session,
// and not again after a restart that finds it passed.
func (r *run) warn(s *scope) {
	for ; s != nil; s = s.parent {
		for k, spent := range s.Spent {
			if spent >= s.warned.next[k] {
				r.raise(s, k, spent)
			}
		}
		if begun := int64(s.Begun + s.Nested); begun >= s.warned.next[warnIterations] {
			r.raise(s, warnIterations, begun)
		}
		if active := int64(s.active(r.mark)); active >= s.warned.next[warnWall] {
			r.raise(s, warnWall, active)
		}
	}
}

func (r *run) raise(s *scope, kind int, value int64) {
	for s.passes(kind, value) {
		r.emit(Event{
			Kind: EventWarn, Scope: s.Path, Iteration: s.Begun, Budget: warnNames[kind],
			Percent: levels[s.warned.levels[kind]],
		})
		s.warned.levels[kind]++
		s.warned.next[kind] = s.dueAt(kind)
	}
}
