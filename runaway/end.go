// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"slices"
)

// End says how the iteration ended. Its reservation is released, and it is charged what it reported. If it reported
// nothing, it is charged what was reserved; so is the cost, if that was Unpriced. Iterations of its children that are
// open fail, and the contexts of Bind end.
//
// After SandboxLost nothing begins until Governor.Resume says that a fresh sandbox was verified.
//
// The error is a *StopError if the run is over and iterations that are open have to end, or if this outcome is what
// it stops for; the outcome is recorded all the same. It is ErrLost if the iteration had ended, for instance because
// it took too long: then this outcome counts for nothing.
func (it *Iteration) End(o Outcome) error {
	r, sl, err := it.enter((*lookout).glance)
	if r != nil {
		defer r.unlock()
	}
	if err != nil {
		return err
	}
	s := it.scope
	before := s.stopped()
	if o.Kind == Accepted && sl.dup {
		o.Kind = Duplicate
	}
	if err := r.end(s, sl, &o, true); err != nil {
		return err
	}
	if o.Kind == SandboxLost { // the record says so by itself
		r.retime()
		r.emit(Event{Kind: EventPause, Iteration: it.n, Detail: r.root().Paused})
	}
	r.judgeSpending(s)
	r.judgeOutcome(s)
	if err := r.full(); err != nil {
		return err
	}
	r.snapshot()
	if r.broken != nil {
		return r.broken
	}
	if stop := s.abortedBy(); stop != nil {
		return stop
	}
	if stop := s.stopped(); stop != before {
		return stop
	}
	return nil
}

// end settles an iteration, after those of its children. If the host's word cannot be had or trusted, it is charged at
// least what was reserved.
func (r *run) end(s *scope, sl *slot, o *Outcome, trusted bool) error {
	var first error
	for _, c := range r.kids(s, sl.N) {
		for _, open := range slices.Clone(c.Open) {
			if err := r.end(c, open, &Outcome{Kind: Failed}, false); err != nil && first == nil {
				first = err
			}
		}
	}
	n, charge := sl.N, sl.Spent
	if !trusted || !sl.Reported || sl.distrust {
		charge.raise(&sl.Reserved)
	} else if sl.Unpriced {
		charge[cost] = max(charge[cost], sl.Reserved[cost])
	}
	r.unbind(sl, ErrLost)
	o.clean()
	rec := r.record(OpEnd, s, n)
	charge.putInto(&rec.Usage)
	rec.Kind, rec.Class = o.Kind, o.Class
	rec.Scored, rec.Score = o.Scored, o.Score
	rec.Head = o.Head
	err := r.commit(rec, false)
	r.warn(s)
	r.retime()
	r.broadcast()
	if r.out != nil {
		r.emit(Event{Kind: EventEnd, Scope: s.Path, Iteration: n, Outcome: o.Kind, Usage: charge.usage()})
	}
	if first != nil {
		return first
	}
	return err
}

// judgeOutcome stops a governor whose last outcomes are too bad.
func (r *run) judgeOutcome(s *scope) {
	if s.tripped != 0 {
		r.halt(s, s.finding(s.tripped), true, "", nil)
	}
}

// expire ends every iteration that has taken too long, without anybody asking.
func (r *run) expire() {
	late := func(sl *slot) bool { return sl.waiting == 0 && r.now >= sl.due }
	for _, s := range r.Scopes {
		if !slices.ContainsFunc(s.Open, late) {
			continue
		}
		for _, sl := range slices.Clone(s.Open) {
			if !late(sl) {
				continue
			}
			r.unbind(sl, &timeoutError{sl.N, s.Limits.PerIteration})
			s.touch(r.mark)
			_ = r.end(s, sl, &Outcome{Kind: TimedOut}, false) // if it failed, the run is stopped
			r.judgeSpending(s)
			r.judgeOutcome(s)
		}
	}
}
