// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// applyOpen begins a session. What the one before left open has failed, and is charged the larger of what was reserved
// and what was reported: nobody knows what it spent before it died.
func (l *ledger) applyOpen(r *Record) error {
	if r.Limits == nil {
		return corrupt(r, "no limits")
	}
	if len(l.Scopes) == 0 {
		l.newScope("", *r.Limits)
	}
	for _, s := range l.deepestFirst() {
		for _, sl := range slices.Clone(s.Open) {
			charge := sl.Spent.atLeast(sl.Reserved)
			l.settle(s, sl, &Record{Op: OpEnd, Kind: Failed}, &charge)
		}
		s.plan(l.Active)
		s.touched = r.Active
	}
	l.root().limit(l, *r.Limits)
	l.Sessions++
	l.Clean = false
	return nil
}

// limit sets other limits and adapts what depends on them.
func (s *scope) limit(l *ledger, limits Limits) {
	old := s.Limits
	s.Limits = limits
	s.cache(l.Active)
	if old.RateWindow != limits.RateWindow {
		s.Rate.resize(l.Active, s.width)
	}
	if old.FailureWindow != limits.FailureWindow {
		s.Tally.Recent.resize(limits.FailureWindow)
	}
	s.judge()
}

func (l *ledger) applyChild(r *Record) error {
	if r.Limits == nil || r.Scope == "" {
		return corrupt(r, "no limits or no name")
	}
	parent := l.scope(parentPath(r.Scope))
	if parent == nil || parent.slot(r.Iteration) == nil {
		return corrupt(r, "its host is not open")
	}
	s := l.scope(r.Scope)
	if s == nil {
		s = l.newScope(r.Scope, *r.Limits)
	}
	if s.Host != 0 && s.Host != r.Iteration {
		return corrupt(r, "it works in iteration %d", s.Host)
	}
	s.limit(l, *r.Limits)
	if s.Host == 0 {
		s.Host, s.Since = r.Iteration, r.Active
	}
	s.touched = r.Active
	return nil
}

func (l *ledger) applyStop(s *scope, r *Record) error {
	if !r.Reason.known() {
		return corrupt(r, "no reason")
	}
	if s.Stop == nil { // the first one stands
		s.Stop = &StopError{
			Reason: r.Reason, Limit: r.Limit, Value: r.Value, Iteration: r.Iteration, At: r.At, Drain: r.Drain,
			Detail: r.Detail,
		}
		s.Stop.complete(l.RunID, s.Path)
	}
	return nil
}

// complete fills in what follows from the rest.
func (e *StopError) complete(runID, scope string) {
	e.RunID, e.Scope, e.Graceful = runID, scope, e.Reason.graceful()
}

func (l *ledger) applyAmend(s *scope, r *Record) error {
	if r.Limits == nil || r.By == "" || r.Detail == "" {
		return corrupt(r, "no limits, no name or no reason")
	}
	key := amendmentKey(r.By, r.Detail, r.Reason)
	if slices.Contains(l.Amended, key) {
		return corrupt(r, "it was used before")
	}
	l.Amended = append(l.Amended, key)
	s.limit(l, *r.Limits)
	if s.Stop != nil && r.Reason == s.Stop.Reason {
		if s.Tally.lift(r.Reason); r.Reason == ReasonRate {
			s.Rate = rate{} // the window; what was spent in all stays
		}
		s.judge()
		s.Stop = nil
	}
	return nil
}

// amendmentKey tells one amendment from another. The limits are left out: an amendment is a decision, and one decision
// must not serve for ever larger limits.
func amendmentKey(by, reason string, lift Reason) string {
	h := sha256.New()
	for _, part := range []string{by, reason, lift.String()} {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (l *ledger) applyClose(s *scope, r *Record) error {
	if len(s.Open) > 0 {
		return corrupt(r, "iterations are open")
	}
	if s.parent == nil {
		l.Clean = true
	} else if s.Host != 0 {
		s.detach(l)
	}
	return nil
}

// applyTorn takes the note that an unfinished record was cut off. Nobody knows what it was. If it can have been a
// Begin, it counts as an iteration that failed and cost as much as the dearest one: no damage may lower a count. It
// cannot have been one where no Begin was possible.
func (l *ledger) applyTorn() error {
	l.Torn++
	if len(l.Scopes) == 0 {
		return nil // it was to be the first: nothing had begun
	}
	s := l.root()
	if s.Stop != nil || s.Begun+s.Nested >= s.Limits.cap() {
		return nil
	}
	charge, room := s.Largest, l.room(s) // it was admitted, so there was room for it
	for k := range charge {
		charge[k] = min(charge[k], max(0, room[k]))
	}
	s.Begun++
	l.settle(s, &slot{N: s.Begun}, &Record{Op: OpEnd, Kind: Failed}, &charge)
	return nil
}
