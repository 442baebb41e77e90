// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"fmt"
	"math"
)

// Spend reports what the iteration spent since the last report. It may be called any number of times, and costs a
// sync of the disk only when more is spent than was reserved.
//
// A *StopError says that a limit is passed, or that the iteration has to end for another reason: what was reported is
// recorded all the same. ErrInvalidUsage: an amount is negative; nothing is recorded, and since the truth is not
// known the iteration will be charged at least its reservation. ErrLost: the iteration has ended; what it reports is
// charged on top of what it was charged then, since it is gone. After Close nothing is recorded any more.
func (it *Iteration) Spend(u Usage) error {
	r, sl, err := it.enter((*lookout).glance)
	if r == nil {
		return err
	}
	defer r.unlock()
	if u.negative() {
		if sl != nil {
			sl.distrust = true
		}
		return fmt.Errorf("%w: report what was spent, from 0; nothing can be given back", ErrInvalidUsage)
	}
	s := it.scope
	rec := r.record(OpSpend, s, it.n)
	rec.Usage = u
	if commitErr := r.commit(rec, s.unforeseen(sl, u.amounts())); commitErr != nil {
		return commitErr
	}
	r.warn(s)
	r.judgeSpending(s)
	if err != nil {
		return err
	}
	if stop := s.abortedBy(); stop != nil {
		return stop
	}
	return nil
}

// unforeseen reports whether spending this much goes beyond what is reserved, in a budget that has a limit. A crash
// would make it free, unless it is on the disk.
func (s *scope) unforeseen(sl *slot, a amounts) bool {
	if sl != nil {
		a = sl.Spent.plus(a).beyond(sl.Reserved)
	}
	for k, v := range a {
		for c := s; c != nil && v > 0; c = c.parent {
			if min(c.most[k], c.maxRate[k]) != math.MaxInt64 {
				return true
			}
		}
	}
	return false
}

// judgeSpending stops whoever has spent too much.
func (r *run) judgeSpending(s *scope) {
	if !s.anyOver() {
		return
	}
	if over, f, ok := s.overspent(); ok {
		r.halt(over, f, false, "", nil)
	}
}
