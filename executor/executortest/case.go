// SPDX-License-Identifier: Apache-2.0

package executortest

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/evoseal/containment/executor"
)

// Case is one thing that an executor must hold.
type Case struct {
	Name string // stable, lower case with dashes
	Why  string // one sentence: what goes wrong in an executor that fails it

	// Needs are the capabilities that the case attacks; zero: it holds for every executor.
	Needs executor.Capability

	// Alone says that the case measures or changes something that the whole process has only once (its heap, its umask,
	// the processes of a uid), or that it measures time: no other check of this process may run meanwhile.
	Alone bool

	// Control makes the attack where nothing holds it, once per process, and returns nil if it succeeded there. Check
	// does that by itself, first. Nil: the case needs no control, because it reads the property itself from the kernel.
	Control func(ctx context.Context) error

	// Check returns nil if the executor holds, else an error that matches ErrBreach or ErrInconclusive. It is to be
	// called only if Needs are promised. Checks may run at the same time, unless one of them is Alone.
	Check func(ctx context.Context, ex executor.Executor) error

	// once is Check without its control and without asking again.
	once func(ctx context.Context, ex executor.Executor) error
}

// alone marks a case that must run by itself.
func alone(c Case) Case {
	c.Alone = true
	return c
}

// Cases returns every case, grouped by theme, in a fixed order. The slice is the caller's.
func Cases() []Case { return cases() }

// Prepare copies the running binary, which is every attack's program, once for all checks until release is called.
// Without it each check that runs by itself makes a copy.
func Prepare() (release func()) { return keepTemplate() }

// Every case ends by itself within deadline, or the watchdog ends it a little later. The first is generous, because a
// slow machine must not turn into a verdict; the second is for an executor that does not heed its context. A payload has
// patience to reach its attack, and to end by itself if it is to: no case waits for that long on a machine that works.
const (
	deadline = 90 * time.Second
	grace    = 10 * time.Second
	patience = 30 * time.Second
)

// watched runs a check under the deadline and returns even if the check does not: C8 says that no path waits for ever,
// and an executor that breaks this must not take the suite with it.
func watched(ctx context.Context, name string, check func(context.Context) error) error {
	return watchedFor(ctx, name, deadline, grace, check)
}

// watchedFor is watched with limits of its own, for tests that cannot wait so long.
func watchedFor(ctx context.Context, name string, deadline, grace time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- survive(ctx, name, check) }()
	select {
	case err := <-done:
		return err
	case <-time.After(deadline + grace):
		return &Breach{Case: name, Detail: fmt.Sprintf("no result %v after its context had ended", grace)}
	}
}

// survive turns a panic of the executor, or of ours, into a failure of this one case.
func survive(ctx context.Context, name string, check func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = inconclusive(name, "panic: %v\n%s", p, debug.Stack())
		}
	}()
	return check(ctx)
}
