// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"fmt"
	"math"
)

// The arithmetic of reserving. At each admission, and for each kind,
//
//	spent + what open iterations may still spend of their reservations + the new reservation <= limit
//
// holds in the governor and in all above it. What iterations spend beyond their reservations is the only overshoot. A
// child's reservation is made out of that of its host as far as that goes.

// extra is what an open iteration may still spend of its reservation, or of those of its children.
func (l *ledger) extra(s *scope, sl *slot) amounts {
	own := sl.Reserved.beyond(sl.Spent)
	if len(l.Scopes) == 1 {
		return own
	}
	return own.atLeast(l.inner(s, sl))
}

// inner is what the children that work in an iteration may still spend of theirs.
func (l *ledger) inner(s *scope, sl *slot) (sum amounts) {
	for _, c := range l.kids(s, sl.N) {
		sum = sum.plus(l.held(c))
	}
	return sum
}

// held is what all open iterations of a governor may still spend of their reservations.
func (l *ledger) held(s *scope) (sum amounts) {
	for _, sl := range s.Open {
		extra := l.extra(s, sl)
		sum.add(&extra)
	}
	return sum
}

// room is the largest reservation that a new iteration can get now. It is negative where more was spent than allowed.
func (l *ledger) room(s *scope) (room amounts) {
	held := l.held(s)
	for k := range room {
		room[k] = s.most[k]
		if room[k] != math.MaxInt64 {
			room[k] -= add(s.Spent[k], held[k])
		}
	}
	host := s.host()
	if host == nil {
		return room
	}
	above, unused := l.room(s.parent), host.Reserved.beyond(host.Spent).beyond(l.inner(s.parent, host))
	for k := range room {
		room[k] = min(room[k], add(above[k], unused[k]))
	}
	return room
}

// allowance is the smallest budget that applies; math.MaxInt64 is none.
func (s *scope) allowance(kind int) int64 {
	least := s.most[kind]
	for s = s.parent; s != nil; s = s.parent {
		least = min(least, s.most[kind])
	}
	return least
}

// everything stands in a request for all that is left.
const (
	everything     = -1
	everythingText = "as much as is left"
)

// request is what has to be reserved. Without an estimate that is what the dearest iteration was charged, and
// everything as long as none was charged anything: with nothing reserved, a whole first wave of iterations would get
// through.
func (s *scope) request(e *Estimate, m Meter) amounts {
	want := e.amounts()
	if e.Unpriced {
		want[cost] = 0
	}
	for k := range want {
		if want[k] > 0 || m&budgets[k].meter == 0 {
			continue
		}
		if limit := s.allowance(k); limit == 0 || limit == math.MaxInt64 {
			continue
		}
		want[k] = everything
		if s.Largest[k] > 0 {
			want[k] = s.Largest[k]
		}
	}
	return want
}

// unaffordable finds a budget that has no room for a request and will have none when other iterations end.
func (s *scope) unaffordable(want *amounts) (*scope, finding, bool) {
	for k := range want {
		least := want[k]
		if least == everything {
			least = 1
		}
		var over *scope
		for c := s; c != nil && least > 0; c = c.parent {
			if c.most[k] != math.MaxInt64 && add(c.Spent[k], least) > c.most[k] {
				over = c
			}
		}
		if over == nil {
			continue
		}
		what := everythingText
		if want[k] != everything {
			what = want.format(k)
		}
		return over, finding{budgets[k].reason, over.budgetText(k),
			over.Spent.format(k) + " spent, asked for " + what}, true
	}
	return nil, finding{}, false
}

// overspent finds a budget or a rate that was passed, in the order of the reasons. An unknown cost passes a budget that
// allows none.
func (s *scope) overspent() (*scope, finding, bool) {
	for k, b := range budgets {
		if over := s.outermost(func(c *scope) bool { return c.passed(k) }); over != nil {
			value := over.Spent.format(k)
			if over.Spent[k] <= over.most[k] {
				value = "an unknown cost"
			}
			return over, finding{b.reason, over.budgetText(k), value}, true
		}
	}
	for k, b := range budgets {
		if over := s.outermost(func(c *scope) bool { return c.Rate.Sum[k] > c.maxRate[k] }); over != nil {
			limit := fmt.Sprintf("MaxRate %s %s in %v", b.name, over.maxRate.format(k), over.Limits.RateWindow)
			return over, finding{ReasonRate, limit, over.Rate.Sum.format(k)}, true
		}
	}
	return nil, finding{}, false
}

// anyOver reports whether overspent would find something.
func (s *scope) anyOver() bool {
	for ; s != nil; s = s.parent {
		if s.over {
			return true
		}
	}
	return false
}

func (s *scope) overspentHere() bool {
	return s.Spent.exceeds(&s.most) || s.Rate.Sum.exceeds(&s.maxRate) || s.Unpriced && s.most[cost] == 0
}

func (s *scope) passed(kind int) bool {
	return s.Spent[kind] > s.most[kind] || kind == cost && s.Unpriced && s.most[cost] == 0
}

// outermost returns the first governor for which the condition holds, from the run inward.
func (s *scope) outermost(holds func(*scope) bool) (first *scope) {
	for ; s != nil; s = s.parent {
		if holds(s) {
			first = s
		}
	}
	return first
}

func (s *scope) budgetText(kind int) string {
	return "Budget " + budgets[kind].name + " " + s.most.format(kind)
}
