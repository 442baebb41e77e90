// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/evoseal/containment/executor"
)

// probe is one attempt on the scene's executor: nil means contained.
type probe func(s *scene) error

// check makes a case of a probe that observes something by itself (an exit code, a list, a uid). Seeing the right thing
// is the proof that the payload ran, so it needs no control.
func check(name, why string, needs executor.Capability, p probe) Case {
	return checkWithin(deadline, name, why, needs, p)
}

// checkWithin is check for a case that makes so many runs that a slow machine needs more than the deadline for them.
func checkWithin(limit time.Duration, name, why string, needs executor.Capability, p probe) Case {
	return Case{
		Name: name, Why: why, Needs: needs,
		Check: func(ctx context.Context, ex executor.Executor) error {
			return watchedFor(ctx, name, limit, grace, func(ctx context.Context) error { return confirmed(ctx, name, ex, p) })
		},
		once: onlyOnce(limit, name, p),
	}
}

// onlyOnce makes one attempt on an executor, for those who know what it is like: our own mutants.
func onlyOnce(limit time.Duration, name string, p probe) func(context.Context, executor.Executor) error {
	return func(ctx context.Context, ex executor.Executor) error {
		return watchedFor(ctx, name, limit, grace, func(ctx context.Context) error { return attempt(ctx, name, ex, false, p) })
	}
}

// attack makes a case of a probe that is contained if nothing happens. That proves something only if it does happen
// where nothing holds it: the control.
func attack(name, why string, needs executor.Capability, p probe) Case {
	return attackUnder(name, why, needs, control{}, p)
}

// attackUnder is attack with a control of its own, for what plain execution on a copy would hold as well.
func attackUnder(name, why string, needs executor.Capability, weak control, p probe) Case {
	outside := func(ctx context.Context) error { return controlled(ctx, name, weak, p) }
	return Case{
		Name: name, Why: why, Needs: needs,
		Control: func(ctx context.Context) error { return watched(ctx, name, outside) },
		Check: func(ctx context.Context, ex executor.Executor) error {
			return watched(ctx, name, func(ctx context.Context) error {
				if err := outside(ctx); err != nil {
					return err
				}
				return confirmed(ctx, name, ex, p)
			})
		},
		once: onlyOnce(deadline, name, p),
	}
}

// lateTries is how often an executor must be late before that is a breach.
const lateTries = 3

// confirmed tries an attack on an executor. A result that comes too late may be the fault of a busy machine, which is
// punctual at another time; an executor that waits for something waits each time. No other breach gets a second chance.
func confirmed(ctx context.Context, name string, ex executor.Executor, p probe) (err error) {
	for range lateTries {
		err = attempt(ctx, name, ex, false, p)
		var breach *Breach
		if !errors.As(err, &breach) || !breach.late {
			return err
		}
	}
	return err
}

// attempt sets a scene, lets one probe play on it and clears it away, whatever the probe found.
func attempt(ctx context.Context, name string, ex executor.Executor, isControl bool, p probe) error {
	s, err := newScene(ctx, name, ex, isControl)
	if err != nil {
		return err
	}
	defer s.close()
	return p(s)
}

// proven holds the names of the cases whose attack has succeeded under the control in this process. A failure is not
// kept: it may have been the machine's, and the next attempt says so again.
var proven sync.Map

// controlTries is how often an attack may miss before it counts as one that cannot succeed. Some hit a window that is
// open for microseconds, and beside a busy machine's other work one attempt may sleep through all of them.
const controlTries = 5

// controlled runs the attack without protection, once per process, and demands that it succeeds.
func controlled(ctx context.Context, name string, weak control, p probe) error {
	if _, ok := proven.Load(name); ok {
		return nil
	}
	var err error
	for try := 0; err == nil && try < controlTries; try++ {
		err = attempt(ctx, name, weak, true, p)
	}
	switch {
	case errors.Is(err, ErrBreach):
		proven.Store(name, true)
		return nil
	case err == nil:
		err = fmt.Errorf("the attack fails without any protection, %d times, so it proves nothing here", controlTries)
	}
	return fmt.Errorf("%w: %s: control: %w", ErrInconclusive, name, err)
}
