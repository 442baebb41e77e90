// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/evoseal/containment/executor"
)

// Grace periods for an executor under attack. The first is for the methods that only say something; the second for Run,
// after its context has ended: killing a tree takes a moment.
const (
	answerTime = 2 * time.Second
	endTime    = time.Second

	// firstTime and runTime bound the first run and every other one of the decisive attacks. Their payloads need 2 s at
	// most, and the first one nothing. Other attacks have the bounds of their cases.
	firstTime = 4 * time.Second
	runTime   = 6 * time.Second

	maxEnforced = 64 // entries; there is one for each limit and each capability
)

// guard stands between the attacks and an executor that may do anything: hang, panic, change its claims, return
// nothing. Whatever it does, the attacks go on to their end, and their clean-up with them.
type guard struct {
	inner       executor.Executor
	claimed     executor.Capability
	fingerprint string
	limit       time.Duration // of the next runs; 0: that of the case

	mu       sync.Mutex
	fault    error // the first of the faults after which nothing that the executor does is a proof
	enforced []executor.Enforcement
	absent   bool // a run ended because the attack's program could not be started in there
}

// newGuard asks the executor once what it is; from then on it must say the same.
func newGuard(ctx context.Context, ex executor.Executor) (*guard, error) {
	if isNil(ex) {
		return nil, errNil
	}
	g := &guard{inner: ex}
	var err error
	if g.claimed, g.fingerprint, err = g.ask(ctx); err != nil {
		return nil, err
	}
	return g, nil
}

// ask returns what the executor says about itself, if it says it in time.
func (g *guard) ask(ctx context.Context) (claimed executor.Capability, fingerprint string, err error) {
	type answer struct {
		claimed     executor.Capability
		fingerprint string
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
	defer cancel()
	a, err := called(ctx, 0, func(context.Context) (answer, error) {
		return answer{g.inner.Capabilities(), fingerprintOf(g.inner)}, nil
	})
	return a.claimed, a.fingerprint, faultOf(ctx, err)
}

// unchanged demands the answers of the beginning, and returns the first fault that was met since.
func (g *guard) unchanged(ctx context.Context) error {
	claimed, fingerprint, err := g.ask(ctx)
	switch {
	case err != nil:
		g.trip(err)
	case claimed != g.claimed:
		g.trip(fmt.Errorf("%w: it claimed %v, and then %v", ErrUnsteady, g.claimed, claimed))
	case fingerprint != g.fingerprint:
		g.trip(fmt.Errorf("%w: its fingerprint was %q, and then %q", ErrUnsteady, g.fingerprint, fingerprint))
	}
	return g.tripped()
}

// trip keeps the first fault.
func (g *guard) trip(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fault == nil {
		g.fault = err
	}
}

func (g *guard) tripped() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fault
}

// Capabilities is what was claimed first. Every question is passed on, so that a change is noticed.
func (g *guard) Capabilities() executor.Capability {
	_ = g.unchanged(context.Background()) // the fault is kept
	return g.claimed
}

// Run passes a run on, and returns whether the executor does or not.
func (g *guard) Run(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
	if err := g.tripped(); err != nil {
		return nil, err
	}
	type outcome struct {
		res *executor.Result
		err error
	}
	within, cancel := ctx, context.CancelFunc(func() {})
	if g.limit > 0 {
		within, cancel = context.WithTimeoutCause(ctx, g.limit, errSlow)
	}
	defer cancel()
	out, err := called(within, endTime, func(ctx context.Context) (outcome, error) {
		res, err := g.inner.Run(ctx, spec)
		return outcome{res, err}, nil
	})
	if err = faultOf(within, err); err == nil && errors.Is(context.Cause(within), errSlow) {
		err = errSlow // that it came back when it was told to is no verdict
	}
	if err != nil {
		g.trip(err)
		return nil, err
	}
	if out.err == nil && out.res != nil {
		g.note(out.res)
	}
	return out.res, out.err
}

// note keeps the first report about mechanisms, as far as it can stand in a record.
func (g *guard) note(res *executor.Result) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.absent = g.absent || res.Cause == executor.CauseNotFound || res.Cause == executor.CauseNotExecutable
	if g.enforced != nil {
		return
	}
	for _, e := range res.Enforced[:min(len(res.Enforced), maxEnforced)] {
		e.Limit, e.Note = printable(e.Limit), printable(e.Note)
		e.By, e.Scope = executor.Mechanism(printable(string(e.By))), executor.Scope(printable(string(e.Scope)))
		g.enforced = append(g.enforced, e)
	}
}

// noted returns what was kept. A guard that never came to be has kept nothing.
func (g *guard) noted() (enforced []executor.Enforcement, absent bool) {
	if g == nil {
		return nil, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.enforced, g.absent
}

// faultOf gives what called reports a name that callers can test for.
func faultOf(ctx context.Context, err error) error {
	panicked, isPanic := errors.AsType[*panicError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errAbandoned):
		return fmt.Errorf("%w: %w", ErrHung, context.Cause(ctx))
	case isPanic:
		return fmt.Errorf("%w: %v", ErrPanicked, panicked.value)
	}
	return fmt.Errorf("%w: %w", ErrPanicked, err)
}
