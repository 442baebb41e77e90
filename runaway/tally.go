// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"fmt"
	"math"
)

// tally is what the outcomes so far say about the generator.
type tally struct {
	Streak  int     `json:"streak"`  // failures since the last acceptance of something new
	Neutral int     `json:"neutral"` // unjudged iterations in a row
	Dups    int     `json:"dups"`
	Stale   int     `json:"stale"`  // iterations since the last improvement
	Best    float64 `json:"best"`   // of the accepted ones, if there was one
	Better  bool    `json:"better"` // there is a Best
	Scored  bool    `json:"scored"` // a score was reported, be it not a number

	Class    string `json:"class"` // of the last failure that had one
	ClassRow int    `json:"class_row"`

	Recent window `json:"recent"`
	Heads  heads  `json:"heads"` // accepted last, oldest first
	Known  prints `json:"known"` // every head that was accepted
	Seen   prints `json:"seen"`  // every variant that was asked about
}

// count takes the outcome of one iteration. It reports whether a new head has to be remembered.
func (t *tally) count(r *Record, l *Limits) (fresh bool) {
	named := !r.Head.IsZero()
	fresh = r.Kind == Accepted && !(named && t.Known.has(r.Head))
	t.countScore(r, l, fresh)
	if r.Kind == Neutral {
		t.Neutral++
		return false
	}
	t.Neutral = 0
	t.Recent.add(r.Kind.Failure(), l.FailureWindow)
	if r.Kind == Duplicate {
		t.Dups++
	}
	if r.Kind.Failure() {
		t.Streak++
		t.countClass(r.Class)
		return false
	}
	if named {
		t.Heads.add(r.Head, l.MaxCycle)
	}
	if fresh {
		t.Streak = 0
	}
	return fresh && named
}

func (t *tally) countClass(class string) {
	switch class {
	case "": // says nothing, so it does not end a row either
	case t.Class:
		t.ClassRow++
	default:
		t.Class, t.ClassRow = class, 1
	}
}

// countScore decides whether the iteration was an improvement. Once scores are reported, only a better score is one. A
// run that never reports any improves by accepting something new.
func (t *tally) countScore(r *Record, l *Limits, fresh bool) {
	t.Stale++
	if r.Kind != Accepted {
		t.Scored = t.Scored || r.Scored
		return
	}
	switch {
	case !r.Scored:
		if fresh && !t.Scored {
			t.Stale = 0
		}
	case math.IsNaN(r.Score) || math.IsInf(r.Score, 0):
	case !t.Better || r.Score > t.Best && r.Score-t.Best >= l.MinDelta:
		t.Best, t.Better, t.Stale = r.Score, true, 0
	}
	t.Scored = t.Scored || r.Scored
}

// finding is a limit that is reached.
type finding struct {
	reason       Reason
	limit, value string
}

// judge names the first limit on variants that is reached, in the order of the reasons; 0: none is.
func (t *tally) judge(l *Limits) Reason {
	switch {
	case t.Streak >= l.MaxConsecutiveFailures:
		return ReasonConsecutiveFailures
	case reached(t.Recent.Failures, l.MaxFailures):
		return ReasonFailureRate
	case reached(t.ClassRow, l.MaxSameClass):
		return ReasonSameClass
	case reached(t.Dups, l.MaxDuplicates):
		return ReasonDuplicates
	case t.Heads.period(l.MaxCycle) > 0:
		return ReasonOscillation
	case reached(t.Stale, l.NoImprovement):
		return ReasonNoImprovement
	case t.Neutral >= l.MaxNeutral:
		return ReasonNeutralRow
	}
	return 0
}

// finding puts into words why a limit on the number or the outcome of iterations is reached. That costs more than all
// else in an iteration, so only a stop does it.
func (s *scope) finding(why Reason) finding {
	t, l := &s.Tally, &s.Limits
	switch why {
	case ReasonIterations:
		return found(why, "MaxIterations", l.MaxIterations, s.Begun+s.Nested)
	case ReasonCompleted:
		return found(why, "Iterations", l.Iterations, s.Begun+s.Nested)
	case ReasonConsecutiveFailures:
		return found(why, "MaxConsecutiveFailures", l.MaxConsecutiveFailures, t.Streak)
	case ReasonFailureRate:
		return finding{why, fmt.Sprintf("MaxFailures %d of %d", l.MaxFailures, l.FailureWindow),
			fmt.Sprintf("%d of %d", t.Recent.Failures, len(t.Recent.Failed))}
	case ReasonSameClass:
		return finding{why, fmt.Sprintf("MaxSameClass %d", l.MaxSameClass),
			fmt.Sprintf("%d of %q", t.ClassRow, t.Class)}
	case ReasonDuplicates:
		return found(why, "MaxDuplicates", l.MaxDuplicates, t.Dups)
	case ReasonOscillation:
		return finding{why, fmt.Sprintf("MaxCycle %d", l.MaxCycle),
			fmt.Sprintf("a period of %d, %d times", t.Heads.period(l.MaxCycle), cycles)}
	case ReasonNoImprovement:
		return found(why, "NoImprovement", l.NoImprovement, t.Stale)
	case ReasonNeutralRow:
		return found(why, "MaxNeutral", l.MaxNeutral, t.Neutral)
	}
	return finding{reason: why}
}

func found(r Reason, name string, limit, value int) finding {
	return finding{r, fmt.Sprintf("%s %d", name, limit), fmt.Sprint(value)}
}

func reached(value, limit int) bool { return limit != NoLimit && value >= limit }

// lift starts the count anew that led to a stop. What is known of variants stays known.
func (t *tally) lift(r Reason) {
	switch r {
	case ReasonConsecutiveFailures:
		t.Streak = 0
	case ReasonFailureRate:
		t.Recent = window{}
	case ReasonSameClass:
		t.Class, t.ClassRow = "", 0
	case ReasonDuplicates:
		t.Dups = 0
	case ReasonOscillation:
		t.Heads = nil
	case ReasonNoImprovement:
		t.Stale = 0
	case ReasonNeutralRow:
		t.Neutral = 0
	}
}
