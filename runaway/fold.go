// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// apply adds what a record says. It is the only way in which a ledger changes, for a governor at work and for one that
// reads what happened before alike.
func (l *ledger) apply(r *Record) error {
	switch {
	case r.Op == OpSnapshot:
		return l.restore(r)
	case r.Op == OpTorn:
		return l.applyTorn()
	case r.Active < l.Active:
		return corrupt(r, "active time falls from %v to %v", l.Active, r.Active)
	case len(l.Scopes) == 0 && r.Op != OpOpen:
		return corrupt(r, "it is the first")
	case r.Usage.negative():
		return corrupt(r, "negative usage")
	}
	l.Active, l.At = r.Active, r.At
	switch r.Op {
	case OpOpen:
		return l.applyOpen(r)
	case OpChild:
		return l.applyChild(r)
	}
	s := l.scope(r.Scope)
	if s == nil {
		return corrupt(r, "no such scope")
	}
	switch r.Op {
	case OpBegin:
		return l.applyBegin(s, r)
	case OpSpend:
		return l.applySpend(s, r)
	case OpEnd:
		return l.applyEnd(s, r)
	case OpSeen:
		l.remember(&s.Tally.Seen, r.Head)
	case OpStop:
		return l.applyStop(s, r)
	case OpPause:
		s.hold(r.Detail)
	case OpResume:
		s.Paused = ""
	case OpAmend:
		return l.applyAmend(s, r)
	case OpTick:
	case OpClose:
		return l.applyClose(s, r)
	default:
		return corrupt(r, "unknown operation")
	}
	return nil
}

func (l *ledger) applyBegin(s *scope, r *Record) error {
	switch {
	case r.Iteration != s.Begun+1:
		return corrupt(r, "the last one was %d", s.Begun)
	case s.parent != nil && (r.Parent != s.Host || s.host() == nil):
		return corrupt(r, "iteration %d of its parent is not open", r.Parent)
	}
	s.Begun++
	for p := s.parent; p != nil; p = p.parent {
		p.Nested++
	}
	sl := l.spare()
	sl.N, sl.At, sl.Reserved, sl.Unpriced = r.Iteration, r.At, r.Usage.amounts(), r.Usage.Unpriced
	s.Open = append(s.Open, sl)
	return nil
}

// applySpend also takes what is reported for an iteration that has ended: the money is gone all the same.
func (l *ledger) applySpend(s *scope, r *Record) error {
	if r.Iteration < 1 || r.Iteration > s.Begun {
		return corrupt(r, "it has not begun")
	}
	if sl := s.slot(r.Iteration); sl != nil {
		sl.Reported = true
		sl.Unpriced = sl.Unpriced || r.Usage.Unpriced
	}
	for c := s; c != nil && r.Usage.Unpriced; c = c.parent {
		c.Unpriced = true
		c.over = c.overspentHere()
	}
	a := r.Usage.amounts()
	l.pay(s, r.Iteration, &a)
	return nil
}

// pay charges an iteration, its governor and all governors above.
func (l *ledger) pay(s *scope, n int, a *amounts) {
	if a.isZero() {
		return
	}
	for ; s != nil; s, n = s.parent, s.Host {
		if sl := s.slot(n); sl != nil {
			sl.Spent.add(a)
		}
		s.Spent.add(a)
		s.Rate.add(a, l.Active, s.width)
		s.over = s.overspentHere()
	}
}

func (l *ledger) applyEnd(s *scope, r *Record) error {
	sl := s.slot(r.Iteration)
	charge := r.Usage.amounts()
	switch {
	case sl == nil:
		return corrupt(r, "it is not open")
	case sl.Spent.exceeds(&charge):
		return corrupt(r, "it is charged less than it spent")
	case l.busyKids(s, r.Iteration):
		return corrupt(r, "iterations of its children are open")
	}
	l.settle(s, sl, r, &charge)
	return nil
}

// settle ends an iteration.
func (l *ledger) settle(s *scope, sl *slot, r *Record, charge *amounts) {
	rest := charge.beyond(sl.Spent)
	l.pay(s, sl.N, &rest)
	if host := s.host(); host != nil {
		host.Reported = true // what a child spent is what its host spent
	}
	if len(l.Scopes) > 1 {
		for _, c := range l.kids(s, sl.N) {
			c.detach(l)
		}
	}
	s.drop(sl)
	l.release(sl)
	s.Ended++
	s.Largest.raise(charge)
	switch r.Kind {
	case Accepted:
		s.Accepted++
	case SandboxLost:
		l.root().hold(PauseSandboxLost)
	}
	if s.Tally.count(r, &s.Limits) {
		l.remember(&s.Tally.Known, r.Head)
	}
	s.tripped = s.Tally.judge(&s.Limits)
}

// drop takes an iteration off the list of open ones, which stays in the order in which they began.
func (s *scope) drop(sl *slot) {
	if i := slices.Index(s.Open, sl); i >= 0 {
		copy(s.Open[i:], s.Open[i+1:])
		s.Open = s.Open[:len(s.Open)-1]
	}
}

// hold begins a pause, or adds a reason to one: whoever ends it is to know all of them.
func (s *scope) hold(why string) {
	if s.Paused != "" && s.Paused != why {
		why += "; " + s.Paused
	}
	s.Paused = clip(why, maxDetail)
}

// detach takes a child out of its host.
func (s *scope) detach(l *ledger) {
	s.Prior, s.Host = s.active(l.Active), 0
}

// remember adds a fingerprint, as long as there is room.
func (l *ledger) remember(set *prints, f Fingerprint) {
	if !set.has(f) && l.remembered < maxRemembered {
		set.add(f)
		l.remembered++
	}
}

func (l *ledger) busyKids(s *scope, n int) bool {
	if len(l.Scopes) == 1 {
		return false
	}
	return slices.ContainsFunc(l.kids(s, n), func(c *scope) bool { return len(c.Open) > 0 })
}

// restore reads a snapshot in the place of everything before it.
func (l *ledger) restore(r *Record) error {
	var snap ledger
	d := json.NewDecoder(bytes.NewReader(r.Snapshot))
	d.DisallowUnknownFields() // what a later version knows of the run may forbid what this one would do
	if err := d.Decode(&snap); err != nil {
		return fmt.Errorf("%w: snapshot: %w", ErrStateCorrupt, err)
	}
	if len(snap.Scopes) == 0 || snap.Scopes[0] == nil || snap.Scopes[0].Path != "" || snap.RunID != l.RunID {
		return corrupt(r, "a snapshot of something else")
	}
	for _, s := range snap.Scopes {
		if s == nil || slices.Contains(s.Open, nil) {
			return corrupt(r, "incomplete")
		}
		if s.Path != "" {
			if s.parent = snap.scope(parentPath(s.Path)); s.parent == nil {
				return corrupt(r, "scope %q has no parent", s.Path)
			}
		}
		s.cache(snap.Active)
		if s.Stop != nil {
			s.Stop.complete(snap.RunID, s.Path)
		}
		snap.remembered += len(s.Tally.Seen) + len(s.Tally.Known)
	}
	*l = snap
	return nil
}
