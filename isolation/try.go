// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/runaway"
)

// ErrProposal: a proposal asks for nothing, or for two things.
var ErrProposal = errors.New("isolation: a proposal has either Generate or at least one of Edits")

// step is one call of Try. It holds what the stages hand on.
type step struct {
	b       *Boundary
	p       Proposal
	it      *runaway.Iteration
	v       *Verdict
	timed   Stage     // which stage the clock runs for; the verdict names the one that decided
	since   time.Time // when it began
	outcome runaway.Outcome

	edits    []allowlist.Edit
	plan     *allowlist.Plan
	receipt  *allowlist.Receipt
	sealed   *allowlist.Manifest // the tree as it was after the run
	asked    bool                // a generator was called: it may have written into the tree
	written  bool                // Apply was called: bytes may be in the tree
	eval     Evaluation
	keep     bool
	tampered bool
	more     int // reasons that were counted and not listed
	cleanup  func()
}

// Try makes one guarded step: it lets the governor admit an iteration, asks for edits, judges and writes them, runs the
// result in the proven executor, and keeps it or puts the accepted tree back. It makes one step at a time: a call while
// one is under way, also from within a generator or a judge, is [ErrBusy].
//
// A variant that was not kept is a *Verdict with a nil error. An error says that there is nothing to go on with: a
// *runaway.StopError when the run is over, a *DenyError when the isolation that is required is not there any more,
// [ErrTreeUnknown], [ErrClosed], [ErrProposal], or the end of ctx before an iteration began. The verdict of a step that
// began comes along with the error.
//
// Whatever happens in the step, the tree is in the end what Verdict.Checkpoint holds. That ctx ends does not keep it
// from being restored. A variant that was kept stays kept, also if the governor took the iteration for a failed one
// because its time was up while the variant was being kept.
func (b *Boundary) Try(ctx context.Context, p Proposal) (*Verdict, error) {
	if isNil(p.Generate) == (len(p.Edits) == 0) {
		return nil, ErrProposal
	}
	ctx, leave, err := b.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	s := &step{b: b, p: p, v: &Verdict{}, outcome: runaway.Outcome{Kind: runaway.Failed}, cleanup: func() {}}
	defer func() { s.cleanup() }()
	if err := s.begin(ctx); err != nil {
		return s.v, err
	}
	s.shielded(func() { s.work(ctx) })
	s.shielded(func() { s.settle(ctx) })
	if s.written && !s.v.Accepted && b.unknown() == nil { // settle itself panicked
		s.shielded(func() { s.putBack(ctx) })
	}
	if s.written && !s.v.Accepted && b.unknown() == nil {
		s.shielded(func() { s.fail(WhyTreeUnknown, b.lose(s.v.Iteration, errors.New("the restoration panicked"))) })
	}
	return s.v, s.end(ctx)
}

// shielded calls f so that a panic or runtime.Goexit in it is a reason, and the step goes on to its end.
func (s *step) shielded(f func()) {
	if err := guarded(f); err != nil {
		s.fail(WhyPanicked, err)
		if s.keep = false; !s.v.Accepted {
			s.outcome.Kind = runaway.Panicked
		}
	}
}

// enterStage notes where the step is, for the verdict and for whoever asks.
func (s *step) enterStage(stage Stage) {
	s.v.Stage = stage
	s.time(stage)
	s.b.at(stage.String())
}

// time lets the clock run for a stage.
func (s *step) time(stage Stage) {
	s.clock()
	s.timed = stage
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.b.stage = stage
}

// clock charges the time since the last call to the stage.
func (s *step) clock() {
	now := time.Now()
	if !s.since.IsZero() {
		s.v.Timing[s.timed] += now.Sub(s.since)
	}
	s.since = now
}

// fail adds a reason. The step ends; what is to be undone is undone in settle.
func (s *step) fail(why Why, err error) { s.add(because(why, err)) }

// add adds a reason, or counts one more: a generator decides how many there are, and a verdict must fit into the log.
func (s *step) add(r Reason) {
	if n := len(s.v.Reasons); n >= maxReasons && r.Why == s.v.Reasons[n-1].Why {
		if s.more == 0 {
			s.more = 1 // the one whose place is taken
		}
		s.more++
		s.v.Reasons[n-1].Detail = fmt.Sprintf("and %d more", s.more)
		return
	}
	s.v.Reasons = append(s.v.Reasons, r)
}

// mayGoOn says whether the next stage may begin: neither stopped, nor cancelled, nor out of time.
func (s *step) mayGoOn(ctx context.Context) bool {
	err := s.it.Check(ctx)
	if err == nil {
		return true
	}
	s.interrupted(err)
	return false
}

// interrupted classifies an error for which the variant is not to blame; false if it is none.
func (s *step) interrupted(err error) bool {
	var stop *runaway.StopError
	switch {
	case errors.As(err, &stop):
		s.fail(WhyStopped, err)
		s.outcome.Kind = runaway.Neutral
	case errors.Is(err, runaway.ErrLost):
		s.fail(WhyIterationTimeout, err)
		s.outcome.Kind = runaway.TimedOut
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrClosed),
		errors.Is(err, runaway.ErrPaused):
		s.fail(WhyCancelled, err)
		s.outcome.Kind = runaway.Neutral
	default:
		return false
	}
	return true
}

// begin is stage 1. Nothing has happened if it fails.
func (s *step) begin(ctx context.Context) error {
	b := s.b
	s.enterStage(StageBegin)
	over := b.c.Governor.Status().Stop != nil
	if err := b.reconsider(ctx, s.p.Generate); err != nil {
		if ctx.Err() != nil { // nobody had the time to look
			s.fail(WhyCancelled, err)
			return err
		}
		s.fail(WhyDenied, err)
		err = b.stop(err)
		s.refused(ctx, over)
		return err
	}
	it, err := b.c.Governor.Begin(ctx, s.p.Estimate)
	if err != nil {
		if !s.interrupted(err) {
			s.fail(WhyDenied, err)
			s.refused(ctx, over)
		}
		return err
	}
	s.it, s.v.Iteration = it, it.Number()
	return nil
}

// refused records a step that was denied before there was an iteration. A caller that goes on asking when the run is
// over already must not fill the log.
func (s *step) refused(ctx context.Context, over bool) {
	if !over {
		s.clock()
		s.record(ctx)
	}
}

// work is stages 2 to 9. It returns early at the first failure; settle looks at how far it came.
func (s *step) work(ctx context.Context) {
	bound, cancel := s.it.Bind(ctx)
	defer cancel()
	for _, stage := range []struct {
		stage Stage
		do    func(context.Context) bool
	}{
		{StagePropose, s.propose}, {StagePlan, s.judgeEdits}, {StageCheckpoint, s.checkpoint}, {StageApply, s.apply},
		{StageSeal, s.seal}, {StageRun, s.run}, {StageJudge, s.judge},
	} {
		if !s.mayGoOn(bound) {
			return
		}
		s.enterStage(stage.stage)
		if !stage.do(bound) {
			return
		}
	}
	s.keep = true
}

// end is stage 11: the governor is told, once, and the verdict recorded.
func (s *step) end(ctx context.Context) error {
	b := s.b
	s.time(StageEnd)
	b.at(StageEnd.String())
	endErr := s.it.End(s.outcome)
	if endErr != nil && s.v.Accepted {
		b.warn(ctx, "isolation: a variant was kept, and the governor did not take it as accepted", "error", endErr)
	}
	if s.tampered && b.proof.report.Proven.Has(TierConfined.Needs()) {
		s.note(ctx, b.c.Governor.Stop(runaway.ReasonIsolation, "the tree changed while a variant ran in a sandbox"))
	}
	if s.outcome.Kind == runaway.SandboxLost {
		s.note(ctx, b.replace(ctx))
	}
	s.clock()
	s.record(ctx)
	if b.unknown() != nil {
		return b.unknown()
	}
	if stop := b.c.Governor.Status().Stop; stop != nil {
		return stop
	}
	return nil
}

// note logs what failed after the verdict was found.
func (s *step) note(ctx context.Context, err error) {
	if err != nil {
		s.b.warn(ctx, "isolation: "+err.Error())
	}
}

// verdictBody is what the log says about a step.
type verdictBody struct {
	*Verdict
	Outcome  runaway.Kind `json:"outcome"`
	Cause    string       `json:"cause,omitempty"`    // why the run ended, if something ran
	Governor string       `json:"governor,omitempty"` // head of its journal: one that was cut does not fit
}

func (s *step) record(ctx context.Context) {
	b := s.b
	body := verdictBody{Verdict: s.v, Outcome: s.outcome.Kind, Governor: b.c.Governor.Status().Head}
	if s.v.Result != nil {
		body.Cause = s.v.Result.Cause.String()
	}
	if _, err := b.log.record(RecordVerdict, body, false); err != nil {
		s.fail(WhyStateFailed, err)
		s.note(ctx, b.c.Governor.Stop(runaway.ReasonState, clip(err.Error())))
	}
	s.v.Evidence = b.log.Head()
	level := slog.LevelInfo
	if b.unknown() != nil || s.tampered {
		level = slog.LevelError
	}
	b.say(ctx, level, "isolation: step", "iteration", s.v.Iteration, "accepted", s.v.Accepted, "stage", s.v.Stage,
		"reasons", fmt.Sprint(s.v.Reasons), "outcome", s.outcome.Kind, "took", s.v.Timing.Total())
}
