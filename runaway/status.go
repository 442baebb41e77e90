// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"math"
	"time"
)

// Status is what a governor knows, at one moment.
type Status struct {
	RunID  string
	Scope  string // "" is the run itself
	Limits Limits // with defaults

	Attempts  int // own iterations that began; with Nested they are what the cap binds
	Nested    int // iterations of children
	Completed int // own iterations that ended, however
	Accepted  int // of these, the accepted ones
	Torn      int // unfinished records that were found, each counted as a failed iteration if it can have been one

	Streak        int // failures since the last acceptance of something new
	Failures      int // in the last FailureWindow
	SameClass     int // failures of one class in a row
	Duplicates    int
	SinceBetter   int // iterations without improvement
	Neutral       int // neutral outcomes in a row
	Best          float64
	HasBest       bool
	Spent         Usage
	Reserved      Usage // by open iterations, and not spent yet
	Remaining     Usage // NoLimit where there is none; never below zero
	SpentInWindow Usage // in the last RateWindow

	Active  time.Duration   // counts against Wall
	Open    []OpenIteration // of this governor and its children
	Paused  string          // why; "": it is not
	Stop    *StopError      // nil: it goes on
	Head    string          // of the journal: keep it elsewhere to notice a journal that was put back or cut
	Dropped uint64          // events that the observer was too slow for
	Panics  uint64          // of the observer
}

// Status also works after Close; that of the zero Governor is zero.
func (g *Governor) Status() Status {
	if g == nil || g.run == nil {
		return Status{}
	}
	r, s := g.run, g.scope
	r.lock()
	defer r.unlock()
	s.Rate.move(r.mark, s.width)
	t := &s.Tally
	st := Status{
		RunID: r.RunID, Scope: s.Path, Limits: s.Limits,
		Attempts: s.Begun, Nested: s.Nested, Completed: s.Ended, Accepted: s.Accepted, Torn: r.Torn,
		Streak: t.Streak, Failures: t.Recent.Failures, SameClass: t.ClassRow, Duplicates: t.Dups, SinceBetter: t.Stale,
		Neutral: t.Neutral, Best: t.Best, HasBest: t.Better,
		Spent: s.Spent.usage(), Reserved: r.held(s).usage(), SpentInWindow: s.Rate.Sum.usage(),
		Active: s.active(r.mark), Open: r.open(s), Paused: r.paused(s), Stop: s.stopped(), Head: r.head,
	}
	held, left := r.held(s), amounts{}
	for k := range left {
		left[k] = NoLimit
		if s.most[k] != math.MaxInt64 {
			left[k] = max(0, s.most[k]-add(s.Spent[k], held[k]))
		}
	}
	st.Remaining = left.usage()
	if headed, ok := r.store.(Headed); ok && !r.closed {
		st.Head = headed.Head()
	}
	if r.out != nil {
		st.Dropped, st.Panics = r.out.dropped, r.out.panics.Load()
	}
	return st
}

// open lists what has begun and not ended.
func (r *run) open(of *scope) (list []OpenIteration) {
	for _, s := range r.Scopes {
		if s.within(of) {
			for _, sl := range s.Open {
				list = append(list, OpenIteration{Scope: s.Path, Iteration: sl.N, Since: sl.At})
			}
		}
	}
	return list
}
