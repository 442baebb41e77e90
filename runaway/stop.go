// SPDX-License-Identifier: Apache-2.0

package runaway

import "slices"

// halt stops a governor and its children. The first reason stands. Unless it drains, whatever is open is told to end.
func (r *run) halt(s *scope, f finding, drain bool, detail string, cause error) *StopError {
	if s.Stop == nil {
		err := r.commit(&Record{
			Op: OpStop, Scope: s.Path, Reason: f.reason, Limit: clip(f.limit, maxDetail), Value: clip(f.value,
				maxDetail),
			Iteration: s.Begun, Drain: drain, Detail: clip(detail, maxDetail),
		}, true)
		if s.Stop.Err == nil {
			s.Stop.Err = cause
		}
		if err != nil && s.Stop != r.broken && s.Stop.Err == nil {
			s.Stop.Err = err // it stands in this session, and may not be found in the next
		}
		r.emit(Event{Kind: EventStop, Scope: s.Path, Reason: f.reason, Iteration: s.Begun, Detail: s.Stop.Error()})
		r.broadcast()
	}
	if !drain {
		r.abort(s)
	}
	return s.Stop
}

// abort cancels what is open in a governor and its children.
func (r *run) abort(s *scope) {
	for _, c := range r.Scopes {
		if c.aborted || !c.within(s) {
			continue
		}
		c.aborted = true
		for _, sl := range c.Open {
			r.unbind(sl, s.Stop)
		}
	}
	r.broadcast()
}

// unbind cancels the contexts of an iteration.
func (r *run) unbind(sl *slot, cause error) {
	for _, b := range sl.binds {
		r.cancels = append(r.cancels, canceller{b.cancel, cause})
	}
	sl.binds = slices.Delete(sl.binds, 0, len(sl.binds))
}

// within reports whether a governor is another one or below it.
func (s *scope) within(other *scope) bool {
	for ; s != nil; s = s.parent {
		if s == other {
			return true
		}
	}
	return false
}

// stopped is the stop that holds for a governor: its own, or that of one above.
func (s *scope) stopped() *StopError {
	var first *StopError
	for ; s != nil; s = s.parent {
		if s.Stop != nil {
			first = s.Stop
		}
	}
	return first
}

// abortedBy is the stop for which open iterations of a governor have to end; nil if they may go on.
func (s *scope) abortedBy() *StopError {
	var first *StopError
	for ; s != nil; s = s.parent {
		if s.aborted && s.Stop != nil {
			first = s.Stop
		}
	}
	return first
}

// see takes what the lookout saw.
func (r *run) see(s *sight) {
	if s.kill != "" {
		r.halt(r.root(), finding{ReasonKillFile, "no kill file", s.kill}, false, "", s.err)
	}
	if s.pause != r.filePause {
		r.filePause = s.pause
		r.retime()
		r.broadcast()
		if s.pause != "" {
			r.emit(Event{Kind: EventPause, Detail: s.pause})
		} else {
			r.emit(Event{Kind: EventResume, Detail: "the pause file is gone"})
		}
	}
}

// Stop ends the run, or the child. The reason is usually ReasonOperator or ReasonIsolation; a value that is not
// defined becomes ReasonOperator. It returns nil if the stop, or an earlier one, stands and is recorded, and a
// *StopError if it could not be recorded: then it holds until Close, and the run could be opened again.
func (g *Governor) Stop(reason Reason, detail string) error {
	r, err := g.enter()
	if err != nil {
		return err
	}
	defer r.unlock()
	if !reason.known() {
		reason = ReasonOperator
	}
	r.halt(g.scope, finding{reason: reason}, false, detail, nil)
	if r.broken != nil {
		return r.broken
	}
	return nil
}
