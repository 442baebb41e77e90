// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/runaway"
)

// Proposal asks for one step. Exactly one of Generate and Edits is set.
type Proposal struct {
	// Generate is asked for edits after the governor has admitted the iteration.
	Generate Generator
	// Edits are ready-made: by a person, or from a queue. Spent, what they have cost, is charged first.
	Edits []allowlist.Edit
	Spent runaway.Usage
	// Estimate is reserved before anything is spent; see [runaway.Governor.Begin].
	Estimate runaway.Estimate
}

// Generator proposes a variant. The edits that it returns are judged, written and run as they are at that moment; what
// becomes of the slice afterwards changes nothing. It must return soon after its context ends, or it is abandoned and
// the step fails.
type Generator interface {
	Generate(ctx context.Context, s *Spender) ([]allowlist.Edit, error)
}

// Spender is how a generator reports what it spends. It gives no way to end the iteration. After the generator has
// returned, Seen and Check fail with [runaway.ErrLost]; Spend still charges, since what is spent is gone. The zero
// Spender does nothing.
type Spender struct {
	mu   sync.Mutex
	it   *runaway.Iteration
	over bool
}

// Spend reports what was spent since the last report; see [runaway.Iteration.Spend]. On an error the generator should
// return at once.
func (s *Spender) Spend(u runaway.Usage) error {
	if s == nil || s.it == nil {
		return runaway.ErrLost
	}
	return s.it.Spend(u)
}

// Seen reports whether the run was asked about this variant before, and remembers it; see [runaway.Iteration.Seen]. The
// boundary asks about the edits themselves as well; this is for a fingerprint of the generator's own, such as one that
// ignores comments.
func (s *Spender) Seen(f runaway.Fingerprint) (bool, error) {
	it := s.live()
	if it == nil {
		return true, runaway.ErrLost
	}
	return it.Seen(f)
}

// Check says whether the generator may go on; see [runaway.Iteration.Check].
func (s *Spender) Check(ctx context.Context) error {
	it := s.live()
	if it == nil {
		return runaway.ErrLost
	}
	return it.Check(ctx)
}

func (s *Spender) live() *runaway.Iteration {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil
	}
	return s.it
}

func (s *Spender) revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// copyEdits takes the edits from whoever made them.
func copyEdits(edits []allowlist.Edit) []allowlist.Edit {
	own := slices.Clone(edits)
	for i := range own {
		own[i].Content = bytes.Clone(own[i].Content)
	}
	return own
}

// Identified is a generator that says who it is. When that changes between two steps, the boundary observes and decides
// again before the next one: a run that was opened for one model does not go on with another.
type Identified interface {
	Generator
	Identity() GeneratorIdentity
}
