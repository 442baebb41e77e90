// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/evoseal/containment/runaway"
)

// Open decides which isolation the run needs, puts right what an earlier process left, and finds an executor that is
// proven to hold it. What it cannot find or prove it refuses, naming all that is missing; it never takes less. Nothing
// of a variant has run then. It needs 10 s at most to refuse, however many candidates hang, unless there is much to
// restore: after one that hangs, the others get less time for each run. At last it runs the accepted tree, if the judge
// wants to know what that passes: once, or three times at most if it does not pass, since a test may be flaky. One of
// the runs has to pass everything; that others did not is in the log.
//
// The accepted tree of a run is the one that the first Open finds, and later the one that was kept last. If the tree is
// another one, it is restored: a change by hand belongs into a new run. The error matches [ErrConfig], [ErrDenied] (a
// *DenyError), [ErrTreeUnknown] or [ErrLog], [ErrRejected] if the accepted tree does not pass, or passes less than the
// log has, or is a *runaway.StopError if the run is over.
func Open(ctx context.Context, c Config) (*Boundary, error) { return openWith(ctx, c, hooks{}) }

func openWith(ctx context.Context, c Config, h hooks) (_ *Boundary, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.Executors, c.Run = slices.Clone(c.Executors), ownSpec(c.Run)
	c.RunID = c.Governor.Status().RunID
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = slog.New(calm{c.Logger.Handler()})
	b := &Boundary{c: c, hooks: h.withDefaults()}
	if d, ok := c.Judge.(Demanding); ok {
		b.reports = d.Needs().Artifacts
	}
	if err := b.locate(); err != nil {
		return nil, err
	}
	if stop := c.Governor.Status().Stop; stop != nil {
		return nil, stop
	}
	artifacts := filepath.Join(b.c.StateDir, artifactsDir)
	if err := os.MkdirAll(b.c.StateDir, 0o700); err != nil {
		return nil, problem("StateDir: %w", err)
	}
	// A run that has begun iterations has a log: a missing one is not a new one.
	b.log, err = OpenLog(b.c.StateDir, c.RunID, &LogOptions{MustExist: c.Governor.Status().Attempts > 0, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	err = errors.Join(os.RemoveAll(artifacts), os.Mkdir(artifacts, 0o700)) // nobody else is here: the log is locked
	if err == nil {
		err = b.open(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, b.log.Close())
	}
	b.say(ctx, slog.LevelInfo, "isolation: opened", "tier", b.decided.Required, "executor", b.proof.name,
		"checkpoint", b.accepted.id, "gateFiles", len(b.gate.paths))
	return b, nil
}

// open is everything after the log is there.
func (b *Boundary) open(ctx context.Context) error {
	h, err := b.recover(ctx) // first: a half-done step is undone whether or not there will be another one
	if err != nil {
		return err
	}
	if err := b.admit(ctx); err != nil {
		return err
	}
	if err := b.adopt(ctx, h); err != nil {
		return err
	}
	if err := b.copyGate(); err != nil {
		return fmt.Errorf("isolation: %w", err)
	}
	if err := b.begin(ctx); err != nil {
		return err
	}
	if b.c.Governor.Status().Paused == runaway.PauseSandboxLost { // of an earlier process; the one of this is proven
		return b.c.Governor.Resume(runaway.Approval{By: "boundary", Reason: "a fresh sandbox was verified: " + b.proof.name})
	}
	return nil
}

// admit decides what is required, and finds an executor that has it.
func (b *Boundary) admit(ctx context.Context) error {
	if err := b.decide(ctx, b.c.Sources.Generator); err != nil {
		return err
	}
	p, reports, missing := b.choose(ctx, false)
	if p.ex == nil {
		return b.denied(reports, missing)
	}
	b.use(p)
	return nil
}

// decide decides for a generator and records it, if it is not what was recorded last. It looks at the host when it is
// asked the first time, and when the generator is another one.
func (b *Boundary) decide(ctx context.Context, who GeneratorIdentity) error {
	observed := b.observed
	if b.asked == nil || *b.asked != who {
		sources := b.c.Sources
		sources.Generator = who
		observed = Observe(ctx, sources).withEnv(b.c.Run.Env)
	}
	s, err := b.log.decide(decideInput{trust: b.c.Trust, observed: observed, min: b.c.MinTier, override: b.c.Override,
		approval: b.c.Approval, tree: b.dir})
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.decided, b.observed, b.asked = s, observed, &who
	return nil
}

// measureTries is how often the accepted tree is run at Open until it passes: an honest test that fails now and then must
// not end a run. That takes nothing from what variants are judged by, since each run is of the same bytes and one of them
// has to pass everything, and no less than what the log has.
const measureTries = 3

// begin measures what the accepted tree passes, for a judge that compares.
func (b *Boundary) begin(ctx context.Context) error {
	m, ok := b.c.Judge.(Measuring)
	if !ok {
		return nil
	}
	var failed error
	for try := 1; ; try++ {
		base, err := b.baselineOf(ctx, m, try)
		if err == nil {
			b.baseline = base
			break
		}
		switch rejected := errors.Is(err, ErrRejected); {
		case !rejected && failed != nil: // what is wrong now is another thing
			return fmt.Errorf("%w (before that: %v)", err, failed)
		case !rejected || try == measureTries:
			return errors.Join(failed, err)
		}
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		b.warn(ctx, "isolation: the accepted tree does not pass each time", "error", failed)
		note := clip("the accepted tree is flaky; a later run of the same bytes passed: " + failed.Error())
		if _, err := b.log.record(RecordNote, note, false); err != nil {
			return fmt.Errorf("isolation: %w", err)
		}
	}
	if b.mark == nil {
		b.mark = markOf(b.baseline)
		if err := b.note(phaseBody{Phase: phaseMeasured, Mark: b.mark}); err != nil {
			return fmt.Errorf("isolation: %w", err)
		}
	}
	return nil
}

// baselineOf runs the accepted tree once, in the proven executor; since a variant wrote it, what it reports must not be
// less than what the log has. The error matches ErrRejected if it is the tests that speak against it.
func (b *Boundary) baselineOf(ctx context.Context, m Measuring, try int) (*Baseline, error) {
	eval, cleanup, err := b.execute(ctx, fmt.Sprintf("%s-baseline-%d", b.c.RunID, try))
	defer cleanup()
	if err != nil {
		return nil, fmt.Errorf("isolation: the accepted tree could not be run: %w", err)
	}
	if err := b.drift(); err != nil {
		return nil, errors.Join(fmt.Errorf("isolation: while the accepted tree ran: %w", err), b.restore(ctx, 0))
	}
	base, err := b.measured(ctx, m, eval)
	if err != nil {
		return nil, fmt.Errorf("isolation: the accepted tree does not pass what variants are judged by; mend it first: %w", err)
	}
	if err := b.mark.holds(base); err != nil {
		return nil, fmt.Errorf("isolation: the accepted tree reports less than when it was accepted, and variants would be "+
			"judged by that: look at it, and begin another run id with a tree that you trust: %w", err)
	}
	return base, nil
}

// measured asks a judge for a baseline. There is no iteration at Open whose time could be up, so it has a time of its own.
func (b *Boundary) measured(ctx context.Context, m Measuring, e Evaluation) (*Baseline, error) {
	ctx, cancel := context.WithTimeout(ctx, 6*b.hooks.grace)
	defer cancel()
	base, err := called(ctx, b.hooks.grace, func(ctx context.Context) (*Baseline, error) { return m.Measure(ctx, e) })
	if err == nil && base == nil {
		err = errors.New("the judge measured nothing")
	}
	return base, err
}

// reconsider asks again whether a step may begin: permits expire, and a generator can become another one.
func (b *Boundary) reconsider(ctx context.Context, g Generator) error {
	who := *b.asked
	if named, ok := g.(Identified); ok && !isNil(g) {
		asked, cancel := context.WithTimeout(ctx, b.hooks.grace)
		identity, err := called(asked, 0, func(context.Context) (GeneratorIdentity, error) { return named.Identity(), nil })
		cancel()
		if err != nil {
			return fmt.Errorf("%w: the generator does not say who it is: %w", ErrDenied, err)
		}
		who = identity
	}
	if err := b.decide(ctx, who); err != nil {
		return err
	}
	needs := b.needs()
	b.use(proof{b.proof.name, b.proof.ex, needs, b.proof.report}) // what is asked of a run, and proven again when it is time
	if !b.proof.report.Proven.Has(needs) {
		return b.denied([]Report{b.proof.report}, []error{fmt.Errorf(
			"%s is proven for less than tier %v: open the boundary again with an executor of that tier", b.proof.name,
			b.decided.Required)})
	}
	return b.current(ctx)
}
