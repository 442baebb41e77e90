// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/cgroup"
	"github.com/evoseal/containment/internal/lease"
	"github.com/evoseal/containment/internal/supervise"
)

// setupTime bounds the set-up, which is mostly the copy of the workspace.
const setupTime = 5 * time.Minute

// Plan is what an executor adds to a run. One value serves one run.
type Plan interface {
	// Steps are the preparations in their order: those of Run and the executor's own.
	Steps() []Step
	// Job is what a guard shall start. The files are the plan's; Run does not close them.
	Job() (supervise.Job, supervise.Files, error)
	// Holds names the main mechanism behind a promised capability.
	Holds(executor.Capability) executor.Mechanism
}

// Explainer is a Plan that knows more about why a payload could not be started.
type Explainer interface {
	// Explain returns the error in place of err, which says what the event alone says.
	Explain(e *supervise.Event, err error) error
}

// Step is one preparation; its name is that of the [executor.SetupError] if it fails.
type Step struct {
	Name string
	Do   func(context.Context) error
}

// Run is one run with everything that it holds. Nothing of it exists before its steps are done.
type Run struct {
	Host     *Host
	Spec     executor.Spec
	Limits   executor.Limits // with defaults
	UID, GID int             // of the payload; -1: the caller's

	ID      string
	Dir     string // the run's scratch directory
	Mounted bool   // it is a file system of its own
	Copies  int    // of declared mounts, beside that of the workspace
	Slot    *lease.Slot
	Group   *cgroup.Group
	Stdio   *Stdio
	Lock    *os.File    // the scratch directory, locked as long as the run or its guard lives
	Held    []io.Closer // what else is closed when the run is over

	rlimits []supervise.Rlimit
	lease   *lease.Lease
	work    *os.File // the copy of the workspace, opened before the payload can change its mode
	process *supervise.Process
	lost    bool                                        // nobody has proven that the tree is dead
	before  struct{ total, user, system time.Duration } // CPU time in the run's cgroup that is not the payload's
	full    int64                                       // bytes or inodes in use when the file system was seen full
}

// NewRun makes nothing yet. The specification is valid.
func (h *Host) NewRun(spec executor.Spec) *Run {
	return &Run{Host: h, Spec: spec, Limits: spec.Limits.WithDefaults(), UID: -1, GID: -1}
}

// Do takes the run from nothing to its verdict and removes whatever was made for it.
func (r *Run) Do(ctx context.Context, begin time.Time, caps executor.Capability, p Plan) (*executor.Result, error) {
	result, err := r.execute(ctx, begin, caps, p)
	cleaned := r.cleanup()
	switch {
	case err != nil:
		return nil, errors.Join(err, cleaned)
	case cleaned != nil:
		return nil, cleaned
	}
	result.Timing.Teardown = time.Since(begin) - result.Timing.Setup - result.Timing.Run
	return result, nil
}

// execute takes the run from nothing to its verdict. Whatever it made, cleanup removes.
func (r *Run) execute(ctx context.Context, begin time.Time, caps executor.Capability, p Plan) (*executor.Result, error) {
	setup, cancel := context.WithTimeoutCause(ctx, setupTime, errors.New("the set-up took too long"))
	defer cancel()
	if err := prepare(setup, p.Steps()); err != nil {
		if cause := ctx.Err(); cause != nil {
			return &executor.Result{Cause: executor.CauseCancelled, ExitCode: -1, Detail: "cancelled during set-up"}, nil
		}
		return nil, err
	}
	if err := r.start(p); err != nil {
		return nil, err
	}
	ending, err := Watch{
		Process: r.process, Wall: r.Limits.Wall, CPU: r.Limits.CPU, Over: r.Stdio.Over, OnStart: r.started, Poll: r.poll,
	}.Wait(ctx)
	if err = errors.Join(err, r.buried(ending)); err != nil {
		return nil, err
	}
	if err := r.setupError(ending.Failed); err != nil {
		if x, ok := p.(Explainer); ok {
			err = x.Explain(ending.Failed, err)
		}
		return nil, err
	}
	result := &executor.Result{Enforced: r.enforced(caps, p)}
	if err := r.judge(result, ending); err != nil {
		return nil, err
	}
	result.Timing = Timing(begin, ending)
	return result, r.artifacts(ctx, result)
}

func prepare(ctx context.Context, steps []Step) error {
	for _, step := range steps {
		if err := step.Do(ctx); err != nil {
			return &executor.SetupError{Step: step.Name, Err: err}
		}
	}
	return nil
}

// OpenStdio makes the payload's streams.
func (r *Run) OpenStdio(context.Context) (err error) {
	r.Stdio, err = OpenStdio(&r.Spec, r.Limits.Output, r.UID, r.GID)
	return err
}

// start hands the payload to a guard.
func (r *Run) start(p Plan) error {
	job, files, err := p.Job()
	if err == nil {
		files.Stdin, files.Stdout, files.Stderr = r.Stdio.Payload[0], r.Stdio.Payload[1], r.Stdio.Payload[2]
		files.Lock = r.Lock
		r.process, err = r.Host.server.Start(job, files)
	}
	if err != nil {
		return &executor.SetupError{Step: "guard", Err: err}
	}
	r.Stdio.Started()
	r.lost = true // until the guard says otherwise
	return nil
}

// buried waits for the guard's last word and demands the proof that the tree is dead.
func (r *Run) buried(ending Ending) error {
	if err := r.process.Wait(guardTime); err != nil {
		return fmt.Errorf("%w: %w", executor.ErrLost, err)
	}
	r.lost = ending.Tree == nil && ending.Failed == nil // if that is all, there was no payload
	switch {
	case r.lost:
	case ending.Failed != nil, ending.Leader != nil, ending.Host != executor.CauseUnknown:
		return nil
	default: // behind a wrapper
		return fmt.Errorf("%w: somebody killed what stood around it", executor.ErrLost)
	}
	return fmt.Errorf("%w: its guard was killed", executor.ErrLost)
}

// guardTime bounds the wait for a guard that has nothing left to do.
const guardTime = 5 * time.Second
