// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/supervise"
)

const trialTime = 10 * time.Second

// Trial makes one run through everything that a run needs. The program need not exist: by the time the kernel says so,
// every step before it has succeeded and was checked.
func (h *Host) Trial(ctx context.Context, run func(context.Context, executor.Spec) (*executor.Result, error)) error {
	dir := filepath.Join(h.Scratch, "empty") // stays, for the next one
	if err := MakeDir(dir); err != nil {
		return h.Unsupported("the scratch directory cannot be used", "set Config.ScratchDir", err)
	}
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	spec := executor.Spec{Args: []string{"true"}, Workspace: dir, Label: "trial"}
	result, err := run(ctx, spec)
	if setup, ok := errors.AsType[*executor.SetupError](err); ok && setup.Step == supervise.StepCgroup.String() && !h.Joins {
		h.Joins = true // an outer sandbox refuses clone3; the slower way has the same effect
		result, err = run(ctx, spec)
	}
	switch {
	case errors.Is(err, executor.ErrUnsupported): // the executor knows better than we what that means
		return err
	case err != nil:
		return h.Unsupported("a trial run failed", "see the step that failed", err)
	case result.OK(), result.Cause == executor.CauseNotFound:
		return nil
	}
	return h.Unsupported("a trial run of \"true\" ended as "+result.Cause.String(), result.Detail, nil)
}
