// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"

	"github.com/evoseal/containment/allowlist"
)

// checkpoint is stage 4. The accepted tree has a checkpoint already, taken when it was accepted: what is left is to
// prove that the tree is still that one, and that the checkpoint is still there. So no second one is needed before the
// edit.
func (s *step) checkpoint(ctx context.Context) bool {
	b := s.b
	if !s.undrifted(ctx) {
		return false
	}
	if _, err := b.c.Store.Get(ctx, b.accepted.id); err != nil {
		if !s.interrupted(err) {
			s.fail(WhyCheckpointFailed, err)
		}
		return false
	}
	return true
}

// undrifted compares the tree with the accepted one. If somebody else wrote into it, it is restored and the step ends:
// the edits were judged against what should not be there.
func (s *step) undrifted(ctx context.Context) bool {
	b := s.b
	err := b.drift()
	if err == nil {
		return true
	}
	s.fail(WhyTreeDrift, err)
	b.warn(ctx, "isolation: the tree is not the one that was accepted; it is being restored", "error", err)
	seen := phaseBody{Phase: phaseDifference, Iteration: s.v.Iteration, Detail: clip(err.Error())}
	if noted := b.note(seen); noted != nil {
		s.fail(WhyStateFailed, noted)
	}
	s.putBack(ctx)
	return false
}

// apply is stage 5. The intent is durable before the first byte is written.
func (s *step) apply(ctx context.Context) bool {
	b := s.b
	if err := b.note(phaseBody{Phase: phaseApplying, Iteration: s.v.Iteration, Plan: s.v.Plan}); err != nil {
		s.fail(WhyStateFailed, err)
		return false
	}
	b.at("applying")
	s.written = true
	var err error
	if s.receipt, err = s.plan.Apply(ctx); err != nil {
		if !s.interrupted(err) {
			s.fail(WhyApplyFailed, err)
		}
		return false
	}
	return true
}

// seal is stage 6: what differs from the accepted tree is what was planned, byte for byte, and nothing else.
func (s *step) seal(context.Context) bool {
	b := s.b
	if _, err := b.accepted.manifest.Recheck(b.c.Tree, s.plan); err != nil {
		s.fail(WhyPlanMismatch, err)
		return false
	}
	if err := b.note(phaseBody{Phase: phaseSealed, Iteration: s.v.Iteration, Plan: s.v.Plan}); err != nil {
		s.fail(WhyStateFailed, err)
		return false
	}
	return true
}

// verify is stage 8, whatever came of the run: a variant that failed may have tampered as well. Every byte of the tree
// is read, and no time or size is believed; what comes before and after it in a step is a look at what has changed
// since (see [allowlist.Manifest.Recheck]), so that a step reads the tree once.
func (s *step) verify() bool {
	b := s.b
	s.enterStage(StageVerify)
	var err error
	if s.sealed, err = b.accepted.manifest.Next(b.c.Tree, s.plan, nil); err != nil {
		s.fail(WhyTampered, err)
		s.tampered = errors.Is(err, allowlist.ErrTampered)
		return false
	}
	if err := b.note(phaseBody{Phase: phaseVerified, Iteration: s.v.Iteration, Plan: s.v.Plan}); err != nil {
		s.fail(WhyStateFailed, err)
		return false
	}
	return true
}
