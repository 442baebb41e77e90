// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/runaway"
)

// propose is stage 2.
func (s *step) propose(ctx context.Context) bool {
	if s.p.Generate != nil {
		if !s.generate(ctx) {
			return false
		}
	} else {
		if err := s.it.Spend(s.p.Spent); err != nil {
			if !s.interrupted(err) {
				s.fail(WhyGenerateFailed, err)
			}
			return false
		}
		s.edits = copyEdits(s.p.Edits)
	}
	if len(s.edits) == 0 {
		s.fail(WhyEmpty, nil)
		return false
	}
	seen, err := s.it.Seen(s.b.fingerprint(s.edits))
	if err != nil {
		if !s.interrupted(err) {
			s.fail(WhyGenerateFailed, err)
		}
		return false
	}
	if seen {
		s.fail(WhySeen, nil)
		s.outcome.Kind = runaway.Duplicate
		return false
	}
	return true
}

// generate asks the generator. What it returns together with an error is not looked at.
func (s *step) generate(ctx context.Context) bool {
	s.asked = true
	spender := &Spender{it: s.it}
	edits, err := called(ctx, s.b.hooks.grace, func(ctx context.Context) ([]allowlist.Edit, error) {
		return s.p.Generate.Generate(ctx, spender)
	})
	spender.revoke()
	var panicked *panicError
	switch {
	case err == nil:
		s.edits = copyEdits(edits)
		return true
	case errors.Is(err, errAbandoned):
		s.interrupted(context.Cause(ctx))
		s.fail(WhyGenerateFailed, err)
		return false
	case errors.As(err, &panicked), errors.Is(err, errGoexit):
		s.outcome.Kind = runaway.Panicked
		s.fail(WhyGenerateFailed, err)
		return false
	case ctx.Err() != nil && s.interrupted(context.Cause(ctx)):
		return false
	}
	// Whether the run has stopped is asked of the governor: an error that says so could be the generator's own.
	if stop := s.b.c.Governor.Status().Stop; stop != nil {
		s.interrupted(stop)
		return false
	}
	s.fail(WhyGenerateFailed, err)
	return false
}

// fingerprint identifies the variant that the edits would make of the accepted tree. The same edits of another tree are
// another variant.
func (b *Boundary) fingerprint(edits []allowlist.Edit) (f runaway.Fingerprint) {
	sorted := slices.Clone(edits)
	slices.SortStableFunc(sorted, func(a, b allowlist.Edit) int { return cmp.Compare(a.Path, b.Path) })
	h := sha256.New()
	var size [8]byte
	field := func(data []byte) {
		binary.BigEndian.PutUint64(size[:], uint64(len(data)))
		h.Write(size[:])
		h.Write(data)
	}
	field([]byte("variant v1"))
	field(b.accepted.digest.Content[:])
	for _, e := range sorted {
		field([]byte{byte(e.Op)})
		field([]byte(e.Path))
		field(e.Content)
	}
	h.Sum(f[:0])
	return f
}

// judgeEdits is stage 3. All denials are reported, each as a reason of its own.
func (s *step) judgeEdits(context.Context) bool {
	if err := s.b.ownNames(s.edits); err != nil {
		s.outcome.Kind = runaway.Rejected
		s.fail(WhyEditDenied, err)
		return false
	}
	plan, err := s.b.c.Edits.Plan(s.b.c.Tree, s.edits)
	if err == nil {
		if unchanged(s.edits) {
			s.fail(WhyEmpty, errors.New("every edit writes what is there already"))
			return false
		}
		s.plan, s.v.Plan = plan, plan.Digest()
		return true
	}
	s.outcome.Kind = runaway.Rejected
	var denied *allowlist.DeniedError
	if !errors.As(err, &denied) {
		s.outcome.Kind = runaway.Failed
		s.fail(WhyEditDenied, err)
		return false
	}
	for _, d := range denied.Decisions {
		why := WhyEditDenied
		switch d.Code {
		case allowlist.ErrConflict:
			why = WhyStaleBase
		case allowlist.ErrTooLarge:
			why = WhyTooLarge
		}
		s.add(Reason{why, clip(d.String())})
	}
	s.outcome.Class = denied.Decisions[0].Code.Error()
	return false
}

// ownNames denies edits of names that mean something to the boundary whatever the policy says of them.
func (b *Boundary) ownNames(edits []allowlist.Edit) error {
	if path := b.reported(edits); path != "" {
		return fmt.Errorf("%+q is the report that the run is to write", path)
	}
	for _, e := range edits {
		for part := range strings.SplitSeq(e.Path, "/") {
			if strings.HasPrefix(strings.ToLower(part), stagingPrefix) {
				return fmt.Errorf("%+q: names that begin with %q are those of a restoration under way", e.Path, stagingPrefix)
			}
		}
	}
	return nil
}

// stagingPrefix begins the names under which package rollback prepares a restoration in the tree. A variant that makes
// one could keep the tree from being restored.
const stagingPrefix = ".rollback-"

// reported returns the path of an edit that would put a report there which the judge takes for that of the run; "" if
// there is none. Names are compared without case, since some file systems do.
func (b *Boundary) reported(edits []allowlist.Edit) string {
	for _, e := range edits {
		for _, report := range b.reports {
			if strings.EqualFold(e.Path, report) {
				return e.Path
			}
		}
	}
	return ""
}

// unchanged tells whether edits that were allowed change anything: their bases are what is there.
func unchanged(edits []allowlist.Edit) bool {
	return !slices.ContainsFunc(edits, func(e allowlist.Edit) bool {
		return e.Op != allowlist.Modify || e.Base != allowlist.Sum(e.Content)
	})
}
