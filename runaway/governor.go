// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"context"
	"fmt"
	"time"
)

// Governor decides whether a run may have another iteration. It is safe for use by many goroutines. Open makes one; the
// zero value admits nothing.
type Governor struct {
	run   *run
	scope *scope
	host  int // iteration of the parent that this child works in
}

// enter takes the lock of an open governor.
func (g *Governor) enter() (*run, error) {
	if g == nil || g.run == nil {
		return nil, ErrClosed
	}
	g.run.lock()
	if g.run.closed || !g.attached() {
		g.run.unlock()
		return nil, ErrClosed
	}
	return g.run, nil
}

// attached reports whether the iteration that a child was made in is still its host.
func (g *Governor) attached() bool {
	return g.host == 0 || g.scope.Host == g.host && g.scope.host() != nil
}

// Begin admits another iteration, or says why there is none. It waits for a free slot, for reservations of other
// iterations that may be released, and during a pause, as long as its context lets it.
//
// When it returns, the iteration is on the disk and counts, whatever happens to the process. The estimate is reserved
// in every budget. Without one for a kind that is limited and metered, as much is reserved as the dearest iteration
// was charged, and everything that is left until one was.
//
// The error is a *StopError if the run is over; nothing will change that. It is ErrClosed, ErrInvalidUsage, or the
// cause of the context, which in a pause also matches ErrPaused.
func (g *Governor) Begin(ctx context.Context, e Estimate) (*Iteration, error) {
	if g == nil || g.run == nil {
		return nil, ErrClosed
	}
	if e.negative() {
		return nil, fmt.Errorf("%w: an estimate is what may be spent, from 0", ErrInvalidUsage)
	}
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		s := g.run.files.look()
		it, wait, err := g.tryBegin(&e, &s)
		if it != nil || err != nil {
			return it, err
		}
		select {
		case <-wait.change:
		case <-ctx.Done():
			return nil, wait.interrupted(ctx)
		}
	}
}

// wait is why something has to wait, and until when.
type wait struct {
	change <-chan struct{}
	pause  string // "": for another iteration
}

func (w wait) interrupted(ctx context.Context) error {
	if w.pause == "" {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %s: %w", ErrPaused, w.pause, context.Cause(ctx))
}

func (g *Governor) tryBegin(e *Estimate, seen *sight) (*Iteration, wait, error) {
	r, err := g.enter()
	if err != nil {
		return nil, wait{}, err
	}
	defer r.unlock()
	if stop := r.refuse(g.scope, seen); stop != nil {
		return nil, wait{}, stop
	}
	// The process may have died between a report and the stop for it.
	if r.judgeSpending(g.scope); g.scope.stopped() != nil {
		return nil, wait{}, g.scope.stopped()
	}
	want := g.scope.request(e, r.meter)
	reserve, fits := r.reserve(g.scope, &want)
	if !fits {
		if over, f, ok := g.scope.unaffordable(&want); ok {
			return nil, wait{}, r.halt(over, f, true, "nothing more can be reserved", nil)
		}
	}
	if over, why := g.scope.exhausted(); over != nil {
		return nil, wait{}, r.halt(over, over.finding(why), true, "", nil)
	}
	if why := r.paused(g.scope); why != "" {
		return nil, wait{r.change(), why}, nil
	}
	if !fits || len(g.scope.Open) >= g.scope.Limits.MaxConcurrent {
		return nil, wait{change: r.change()}, nil
	}
	it, err := r.begin(g, &reserve, e.Unpriced)
	return it, wait{}, err
}

// refuse looks at everything that stops a run whatever is asked for: an earlier stop, the files, and time.
func (r *run) refuse(s *scope, seen *sight) *StopError {
	if stop := s.stopped(); stop != nil {
		return stop
	}
	r.see(seen)
	r.enforceTime(s)
	return s.stopped()
}

// exhausted finds a limit on the number or the outcome of iterations that is reached; nil if there is none.
func (s *scope) exhausted() (over *scope, why Reason) {
	for ; s != nil; s = s.parent {
		if here := s.exhaustedHere(); here != 0 {
			over, why = s, here
		}
	}
	return over, why
}

func (s *scope) exhaustedHere() Reason {
	switch begun := s.Begun + s.Nested; {
	case begun >= s.Limits.MaxIterations:
		return ReasonIterations
	case s.tripped != 0:
		return s.tripped
	case begun >= s.Limits.Iterations:
		return ReasonCompleted
	}
	return 0
}

// reserve turns a request into what is reserved; false if there is no room now.
func (r *run) reserve(s *scope, want *amounts) (reserved amounts, fits bool) {
	if want.isZero() {
		return reserved, true
	}
	room := r.room(s)
	for k, v := range want {
		switch {
		case v == everything && room[k] > 0:
			reserved[k] = room[k]
		case v != 0 && (v == everything || v > room[k]):
			return amounts{}, false
		default:
			reserved[k] = v
		}
	}
	return reserved, true
}

// begin counts the iteration, and makes that durable, before anybody can work in it.
func (r *run) begin(g *Governor, reserve *amounts, unpriced bool) (*Iteration, error) {
	s := g.scope
	n := s.Begun + 1
	rec := r.record(OpBegin, s, n)
	rec.Parent = s.Host
	reserve.putInto(&rec.Usage)
	rec.Usage.Unpriced = unpriced
	err := r.commit(rec, true)
	if err != nil {
		// It counts all the same: nobody knows whether the record is on the disk.
		_ = r.end(s, s.slot(n), &Outcome{Kind: Failed}, false)
		return nil, err
	}
	sl := s.slot(n)
	sl.due = later(r.now, s.Limits.PerIteration)
	r.sooner(sl.due)
	s.touch(r.mark)
	r.retime()
	r.warn(s)
	if r.out != nil {
		r.emit(Event{Kind: EventBegin, Scope: s.Path, Iteration: n, Usage: r.rec.Usage})
	}
	if len(r.slab) == 0 {
		r.slab = make([]Iteration, 64) // one allocation for many; none is ever used twice
	}
	it := &r.slab[0]
	r.slab = r.slab[1:]
	*it = Iteration{run: r, scope: s, n: n}
	return it, nil
}

// later adds durations; a sum that is too large is the largest.
func later(t, d time.Duration) time.Duration { return time.Duration(add(int64(t), int64(d))) }

// touch notes that somebody is at work.
func (s *scope) touch(mark time.Duration) {
	for ; s != nil; s = s.parent {
		s.touched = mark
	}
}
