// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ledger is what the records of a run say, and nothing else: it looks at no clock and at no file. A governor changes it
// only through records, so that a restart finds what was there before.
type ledger struct {
	RunID    string        `json:"run"`
	Sessions int           `json:"sessions"`
	Clean    bool          `json:"clean"` // the last session was closed
	Active   time.Duration `json:"active"`
	At       time.Time     `json:"at"`      // of the last record
	Amended  []string      `json:"amended"` // the amendments that were used
	Scopes   []*scope      `json:"scopes"`  // [0] is the run itself
	Torn     int           `json:"torn"`    // unfinished records that were cut off

	remembered int // fingerprints in all scopes
	free       []*slot
}

// maxRemembered bounds the memory for fingerprints, of all scopes together: a snapshot of that many is 12 MB.
const maxRemembered = 1 << 18

// scope is one governor's part of the ledger: the run itself, or a child.
type scope struct {
	Path   string `json:"path"`
	Limits Limits `json:"limits"`

	Begun    int     `json:"begun"`    // own iterations
	Nested   int     `json:"nested"`   // iterations of children, which count as well
	Ended    int     `json:"ended"`    // own
	Accepted int     `json:"accepted"` // own
	Spent    amounts `json:"spent"`    // by iterations that ended and by open ones so far, children included
	Largest  amounts `json:"largest"`  // charged to one iteration
	Unpriced bool    `json:"unpriced"` // an unknown cost was reported
	Rate     rate    `json:"rate"`
	Tally    tally   `json:"tally"`
	Open     []*slot `json:"open"`

	Stop   *StopError `json:"stop"`
	Paused string     `json:"paused"` // why; "": it is not

	Host  int           `json:"host"`  // iteration of the parent that a child works in; 0: none
	Prior time.Duration `json:"prior"` // active time in earlier hosts
	Since time.Duration `json:"since"` // active time of the run when Host took it

	parent        *scope
	most, maxRate amounts       // Budget and MaxRate with NoLimit as the largest number
	width         time.Duration // of a slot of Rate
	over          bool          // a budget or rate was passed
	tripped       Reason        // the limit on outcomes that is reached; 0: none
	// Of this session only:
	touched time.Duration // active time of the run when something was last asked of the governor
	warned  warned
	aborted bool // what is open was told to end
}

// slot is one iteration that has begun and not ended.
type slot struct {
	N        int       `json:"n"`
	At       time.Time `json:"at"`
	Reserved amounts   `json:"reserved"`
	Spent    amounts   `json:"spent"`    // so far, by children too
	Reported bool      `json:"reported"` // the host said what it spent
	Unpriced bool      `json:"unpriced"` // but not what it cost

	live
}

// newScope adds a scope. Its parent must be there.
func (l *ledger) newScope(path string, limits Limits) *scope {
	s := &scope{Path: path, Limits: limits}
	if path != "" {
		s.parent = l.scope(parentPath(path))
	}
	s.cache(l.Active)
	l.Scopes = append(l.Scopes, s)
	return s
}

// cache keeps what admissions need of the limits. run is the active time of the run.
func (s *scope) cache(run time.Duration) {
	s.most, s.maxRate = s.Limits.Budget.amounts().unbounded(), s.Limits.MaxRate.amounts().unbounded()
	s.width = max(1, s.Limits.RateWindow/rateSlots)
	s.plan(run)
	s.judge()
}

// judge finds out whether a limit is reached, once for each change, since it is asked at every admission.
func (s *scope) judge() {
	s.over = s.overspentHere()
	s.tripped = s.Tally.judge(&s.Limits)
}

func parentPath(path string) string {
	return path[:max(0, strings.LastIndexByte(path, '/'))]
}

// depth is 0 for the run, 1 for its children.
func (s *scope) depth() int {
	n := 0
	for s = s.parent; s != nil; s = s.parent {
		n++
	}
	return n
}

// scope finds a governor's part; nil if there is none.
func (l *ledger) scope(path string) *scope {
	for _, s := range l.Scopes {
		if s.Path == path {
			return s
		}
	}
	return nil
}

func (l *ledger) root() *scope { return l.Scopes[0] }

// slot finds an open iteration; nil if it is not open.
func (s *scope) slot(n int) *slot {
	for _, sl := range s.Open {
		if sl.N == n {
			return sl
		}
	}
	return nil
}

// host is the iteration of the parent that a child works in; nil for the run itself and for a child without one.
func (s *scope) host() *slot {
	if s.parent == nil || s.Host == 0 {
		return nil
	}
	return s.parent.slot(s.Host)
}

// attached reports whether iterations can begin here: always in the run itself, in a child while its host is open.
func (s *scope) attached() bool { return s.parent == nil || s.host() != nil }

// active is the active time of the scope when that of the run is so much.
func (s *scope) active(run time.Duration) time.Duration {
	switch {
	case s.parent == nil:
		return run
	case s.Host == 0:
		return s.Prior
	}
	return s.Prior + run - s.Since
}

// kids lists the children that work in an iteration of the scope.
func (l *ledger) kids(s *scope, n int) (kids []*scope) {
	for _, c := range l.Scopes[1:] {
		if c.parent == s && c.Host == n {
			kids = append(kids, c)
		}
	}
	return kids
}

// deepestFirst lists all scopes, children before their parents.
func (l *ledger) deepestFirst() []*scope {
	return slices.SortedStableFunc(slices.Values(l.Scopes), func(a, b *scope) int {
		return cmp.Compare(b.depth(), a.depth())
	})
}

// corrupt says which record makes no sense. The store has verified that it is what was written, so the records were put
// together by somebody else, or by a version of this package with an error.
func corrupt(r *Record, format string, args ...any) error {
	return fmt.Errorf("%w: record %v of iteration %d in scope %q: %s",
		ErrStateCorrupt, r.Op, r.Iteration, r.Scope, fmt.Sprintf(format, args...))
}
