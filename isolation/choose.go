// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/runaway"
)

// proveTime bounds what Verify bounds by itself: it finds a candidate that hangs within 10 s, and takes longer only as
// long as attacks end, on a machine that is busy.
const proveTime = time.Minute

// choose finds the first candidate that reaches the tier and is proven to. What it returns otherwise names, for every
// candidate, what is missing.
func (b *Boundary) choose(ctx context.Context, fresh bool) (proof, []Report, []error) {
	needs := b.needs()
	var reports []Report
	var missing []error
	var wasted time.Duration // on candidates that hang
	for _, c := range b.c.Executors {
		name, began := c.title(), b.hooks.now()
		err := c.promises(needs)
		if err == nil {
			var patience time.Duration
			if patience, err = patienceAfter(wasted); err == nil {
				var report Report
				report, err = b.prove(ctx, c.Executor, needs, fresh, patience)
				reports = append(reports, report)
			}
			if err == nil {
				return proof{name, c.Executor, needs, reports[len(reports)-1]}, reports, nil
			}
		}
		missing = append(missing, fmt.Errorf("%s: %w", name, err))
		if errors.Is(err, ErrHung) || errors.Is(err, ErrTimeout) || errors.Is(err, errAbandoned) {
			wasted += b.hooks.now().Sub(began)
		}
	}
	return proof{}, reports, missing
}

// refuseTime bounds what all candidates that hang may cost together.
const refuseTime = 9500 * time.Millisecond

// patienceAfter says how long a run of the next candidate may take when others have hung for so long already: what is
// left, less what an executor that does not return costs beyond it. 0: the usual time. Where less is left than the attacks
// of one that works need, the next one is not attacked: what is not proven is refused.
func patienceAfter(wasted time.Duration) (time.Duration, error) {
	const least = 3 * time.Second // two for the slowest payload
	patience := refuseTime - wasted - endTime
	switch {
	case wasted == 0:
		return 0, nil
	case patience < least:
		return 0, fmt.Errorf("%w: not attacked, since other executors hang and have used up the time: "+
			"take them out of Config.Executors", ErrTimeout)
	}
	return patience, nil
}

// needs is what every run must be proven to have.
func (b *Boundary) needs() executor.Capability {
	return b.decided.Required.Needs() | b.c.Run.Required()
}

// title names a candidate for people.
func (c *Candidate) title() string {
	switch {
	case c.Name != "":
		return c.Name
	case c.Executor != nil:
		return fmt.Sprintf("%T", c.Executor)
	}
	return "unnamed executor"
}

// promises says why a candidate need not be attacked: there is none, or it does not even claim what is needed.
func (c *Candidate) promises(needs executor.Capability) error {
	if c.Err != nil {
		return c.Err
	}
	if isNil(c.Executor) {
		return errNoExecutor
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	caps, err := called(ctx, 0, func(context.Context) (executor.Capability, error) {
		return c.Executor.Capabilities(), nil
	})
	if err != nil {
		return fmt.Errorf("its capabilities cannot be had: %w", err)
	}
	if lacks := caps.Missing(needs); lacks != 0 {
		return &executor.UnsupportedError{Executor: c.title(), Missing: lacks,
			Reason: fmt.Sprintf("it reaches tier %v at most", Reached(caps)),
			Fix:    "give an executor of the tier that is required"}
	}
	return nil
}

// prove attacks a candidate and records what came of it.
func (b *Boundary) prove(
	ctx context.Context, ex executor.Executor, needs executor.Capability, fresh bool, patience time.Duration,
) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, proveTime)
	defer cancel()
	report, err := called(ctx, graceTime, func(ctx context.Context) (Report, error) {
		return b.hooks.verify(ctx, ex, &VerifyOptions{Needs: needs, Fresh: fresh, Logger: b.c.Logger, patience: patience})
	})
	if err == nil && !report.Proven.Has(needs) {
		err = fmt.Errorf("%w: %v", ErrUnproven, report.Proven.Missing(needs))
	}
	if _, noted := b.log.record(RecordVerification, report, false); noted != nil {
		err = errors.Join(err, noted)
	}
	return report, err
}

// use takes a proven executor. Only the step that is under way, or Open, does; the lock is for those who ask.
func (b *Boundary) use(p proof) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.proof = p
}

// current says whether the proof still holds for the executor as it is now, and repeats the attack if not.
func (b *Boundary) current(ctx context.Context) error {
	stale := b.hooks.current(ctx, b.proof.report, b.proof.ex)
	if stale == nil {
		return nil
	}
	b.warn(ctx, "isolation: the executor is verified again", "executor", b.proof.name, "why", stale)
	report, err := b.prove(ctx, b.proof.ex, b.proof.needs, true, 0)
	if err != nil {
		return b.denied([]Report{report}, []error{fmt.Errorf("%s: %w", b.proof.name, errors.Join(stale, err))})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.proof.report = report
	return nil
}

// replace finds a fresh sandbox after one was lost, and only then lets the governor go on. A pause that somebody else
// asked for stays.
func (b *Boundary) replace(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx) // every attack has a time of its own
	p, reports, missing := b.choose(ctx, true)
	if p.ex == nil {
		return b.stop(b.denied(reports, missing))
	}
	b.use(p)
	if why := b.c.Governor.Status().Paused; why != runaway.PauseSandboxLost {
		return fmt.Errorf("a fresh sandbox was verified; the pause stays, since it has other reasons: %q", why)
	}
	return b.c.Governor.Resume(runaway.Approval{By: "boundary", Reason: "a fresh sandbox was verified: " + p.name})
}

// denied makes the error that says everything.
func (b *Boundary) denied(reports []Report, missing []error) *DenyError {
	return &DenyError{Decision: b.decided.Decision, Required: b.decided.Required, Observed: b.observed, Reports: reports,
		Missing: missing}
}

// stop ends the run because of an error, which stays the first one that the caller sees.
func (b *Boundary) stop(cause error) error {
	return errors.Join(cause, b.c.Governor.Stop(runaway.ReasonIsolation, clip(cause.Error())))
}
