// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"fmt"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/runaway"
)

// judge is stage 9. Keep without an error is the only way on.
func (s *step) judge(ctx context.Context) bool {
	ruling, err := called(ctx, s.b.hooks.grace, func(ctx context.Context) (Ruling, error) {
		return s.b.c.Judge.Judge(ctx, s.eval)
	})
	if err == nil && ruling == Keep {
		return true
	}
	s.outcome.Kind = runaway.Rejected
	var reject *RejectError
	switch {
	case err == nil:
		s.fail(WhyRejected, nil)
	case errors.Is(err, ErrNoResult):
		s.fail(WhyNoResult, err)
	case errors.Is(err, ErrRejected):
		s.fail(WhyRejected, err)
	case ctx.Err() != nil && !errors.Is(err, errAbandoned) && s.interrupted(context.Cause(ctx)):
		return false
	default:
		s.fail(WhyJudgeFailed, err)
		s.outcome.Kind = runaway.Failed
		if errors.As(err, new(*panicError)) || errors.Is(err, errGoexit) {
			s.outcome.Kind = runaway.Panicked
		}
	}
	if errors.As(err, &reject) && len(reject.Findings) > 0 {
		s.outcome.Class = reject.Findings[0].Kind.String()
	}
	return false
}

// settle is stage 10: the variant is kept, or the accepted tree put back.
func (s *step) settle(ctx context.Context) {
	s.time(StageSettle)
	if s.keep && s.mayGoOn(ctx) {
		s.enterStage(StageSettle)
		if s.kept(ctx) {
			return
		}
	}
	s.keep = false
	switch {
	case s.b.unknown() != nil: // it was tried already
	case s.written:
		s.putBack(ctx)
	case s.asked: // the generator may have written by itself, and whatever it returned did not come as far as stage 4
		if s.undrifted(ctx) {
			s.setTree()
		}
	default:
		s.setTree()
	}
}

// kept makes the variant the accepted tree. The checkpoint comes first, so that a decision that is on the disk can
// always be carried out; the tree is compared once more after it, so that the checkpoint holds what was judged.
func (s *step) kept(ctx context.Context) bool {
	b := s.b
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTime)
	defer cancel()
	base := s.measure(ctx) // before the tree is compared: the judge's code runs once more
	c, err := b.checkpoint(ctx, fmt.Sprintf("%s: accepted in iteration %d", b.c.RunID, s.v.Iteration))
	if err != nil {
		s.fail(WhyCheckpointFailed, err)
		return false
	}
	b.at("kept-checkpoint")
	held := make(chan error, 1) // the checkpoint is read while the tree is walked
	go func() {
		err := errGoexit
		if fault := guarded(func() { err = b.holds(ctx, c.ID, s.edits) }); fault != nil {
			err = fault
		}
		held <- err
	}()
	manifest, err := s.sealed.Recheck(b.c.Tree, nil)
	if err = errors.Join(err, <-held); err != nil {
		s.fail(WhyTampered, err)
		s.tampered = errors.Is(err, allowlist.ErrTampered)
		return false
	}
	next := accepted{c.ID, c.Digest, manifest}
	body := phaseBody{Phase: phaseKept, Iteration: s.v.Iteration, Plan: s.v.Plan}
	if base != nil {
		body.Mark = markOf(base)
	}
	body.Checkpoint, body.Content, body.Tree = next.body()
	if err := b.note(body); err != nil {
		// Whether it is on the disk is not known, so neither is which tree the next Open will take for the accepted one.
		s.fail(WhyStateFailed, err)
		s.note(ctx, b.c.Governor.Stop(runaway.ReasonState, clip(err.Error())))
		return false
	}
	b.at("kept")
	b.accept(next)
	if base != nil {
		b.baseline, b.mark = base, body.Mark
	}
	s.v.Accepted = true
	s.v.Reasons = append(s.v.Reasons, Reason{Why: WhyKept})
	s.setTree()
	s.outcome = runaway.Outcome{Kind: runaway.Accepted, Head: runaway.Fingerprint(next.digest.Content)}
	if err := b.c.Store.Pin(ctx, c.ID, pinReason(b.c.RunID)); err != nil {
		b.warn(ctx, "isolation: the checkpoint of the accepted tree is not pinned; the next Open tries again", "error", err)
	}
	b.at("kept-pinned")
	return true
}

// measure takes what the judge compares with from the run that is to be kept. nil: what it has stays.
func (s *step) measure(ctx context.Context) *Baseline {
	b := s.b
	m, ok := b.c.Judge.(Measuring)
	if !ok {
		return nil
	}
	base, err := b.measured(ctx, m, s.eval)
	if err == nil {
		err = b.mark.holds(base)
	}
	if err != nil {
		b.warn(ctx, "isolation: the variant passes less, or that could not be measured; the baseline stays", "error", err)
		return nil
	}
	return base
}

// putBack restores the accepted tree. What was applied is taken back by who applied it first: a variant that is larger
// than the store can capture would be more than it can restore.
func (s *step) putBack(ctx context.Context) {
	if receipt := s.receipt; receipt != nil {
		s.receipt = nil // once only: the restoration below is what counts
		if err := receipt.Revert(context.WithoutCancel(ctx)); err != nil {
			s.note(ctx, fmt.Errorf("the edits could not be taken back one by one: %w", err))
		}
	}
	if err := s.b.restore(ctx, s.v.Iteration); err != nil {
		s.v.Tree = ""
		s.fail(WhyTreeUnknown, err)
		s.note(ctx, s.b.c.Governor.Stop(runaway.ReasonIsolation, clip(err.Error())))
		return
	}
	s.written = false
	s.setTree()
	s.v.Reasons = append(s.v.Reasons, Reason{Why: WhyRestored})
}

// setTree says in the verdict what the tree is.
func (s *step) setTree() {
	s.v.Tree, s.v.Checkpoint = s.b.accepted.text(), s.b.accepted.id
}

func (b *Boundary) accept(a accepted) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accepted = a
}

func (b *Boundary) unknown() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}

func pinReason(run string) string { return "accepted in run " + run }
