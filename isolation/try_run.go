// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/runaway"
)

// artifactsDir is the directory in Config.StateDir that holds what a run left behind, while it is judged.
const artifactsDir = "artifacts"

// setupTime is what an executor may take beside Limits.Wall: its phases have deadlines of their own.
const setupTime = 2 * time.Minute

// run is stages 7 and 8: the executor, and the comparison of the tree after it.
func (s *step) run(ctx context.Context) bool {
	b := s.b
	// The generator may have become another one while it generated, and a proof may have run out.
	if err := b.reconsider(ctx, s.p.Generate); err != nil {
		if ctx.Err() != nil && s.interrupted(context.Cause(ctx)) {
			return false
		}
		s.fail(WhyDenied, err)
		s.note(ctx, b.c.Governor.Stop(runaway.ReasonIsolation, clip(err.Error())))
		return false
	}
	if err := b.note(phaseBody{Phase: phaseRunning, Iteration: s.v.Iteration, Plan: s.v.Plan}); err != nil {
		s.fail(WhyStateFailed, err)
		return false
	}
	b.at("running")
	eval, cleanup, err := b.execute(ctx, fmt.Sprintf("%s-%d", b.c.RunID, s.v.Iteration))
	s.cleanup = cleanup
	s.eval, s.v.Result = eval, eval.Result
	ran := s.classify(ctx, eval.Result, err)
	if !s.verify() {
		return false
	}
	if !ran {
		s.v.Stage = StageRun
	}
	return ran
}

// capture keeps all of a stream that a limit of the run bounds.
type capture struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.Write(p)
}

func (c *capture) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.buf.Bytes())
}

// execute runs the tree as it stands. The function that it returns removes what the evaluation lies in.
func (b *Boundary) execute(ctx context.Context, label string) (Evaluation, func(), error) {
	out := &capture{}
	spec := b.spec(label, out)
	none := func() {}
	cleanup := none
	if len(spec.Artifacts) > 0 {
		dir, err := os.MkdirTemp(filepath.Join(b.c.StateDir, artifactsDir), "run-")
		if err != nil {
			return Evaluation{}, none, err
		}
		spec.ArtifactDir, cleanup = dir, func() { _ = os.RemoveAll(dir) }
	}
	// The executor kills at Limits.Wall by itself, and soon after its context has ended. One that does not is not believed
	// any more, whatever it says later.
	bounded, cancel := context.WithTimeout(ctx, spec.Limits.WithDefaults().Wall+setupTime)
	defer cancel()
	result, err := called(bounded, max(b.hooks.grace, graceTime), func(ctx context.Context) (*executor.Result, error) {
		return b.proof.ex.Run(ctx, spec)
	})
	e := Evaluation{Result: result, Args: slices.Clone(spec.Args), Artifacts: spec.ArtifactDir, Baseline: b.baseline}
	if err == nil && result != nil {
		e.Stdout = out.bytes()
		e.StdoutComplete = result.Stdout.LiveErr == nil && !result.Stdout.Incomplete &&
			int64(len(e.Stdout)) == result.Stdout.Total
	}
	return e, cleanup, err
}

// spec is what one run gets: what the host asked for, on the tree, with the trusted copies in place and nothing less
// than what was proven.
func (b *Boundary) spec(label string, out io.Writer) executor.Spec {
	spec := ownSpec(b.c.Run) // an executor gets nothing that the next run shares
	spec.Workspace, spec.Overlay, spec.Label = b.dir, b.gate.dir, label
	spec.Require |= b.proof.needs
	if b.proof.report.Claimed.Has(executor.ProtectedReadOnly) {
		spec.ReadOnly = b.gate.readOnly(spec.ReadOnly)
	}
	if own := spec.Stdout; own != nil {
		out = io.MultiWriter(out, own)
	}
	spec.Stdout = out
	return spec
}

// classify says what the end of the run means, and whether there is something to judge.
func (s *step) classify(ctx context.Context, r *executor.Result, err error) bool {
	var panicked *panicError
	switch {
	case errors.Is(err, errAbandoned), errors.Is(err, errGoexit), errors.As(err, &panicked):
		// Something of the variant may be alive, and nobody will say when it is not.
		s.fail(WhySandboxLost, err)
		s.note(ctx, s.b.c.Governor.Stop(runaway.ReasonIsolation, clip(err.Error())))
		return false
	case errors.Is(err, executor.ErrLost), errors.Is(err, executor.ErrClosed), errors.Is(err, executor.ErrUnsupported),
		errors.As(err, new(*executor.CleanupError)):
		s.fail(WhySandboxLost, err)
		s.outcome.Kind = runaway.SandboxLost
		return false
	case err != nil && ctx.Err() != nil && s.interrupted(context.Cause(ctx)):
		return false
	case err != nil:
		s.fail(WhyRunFailed, err)
		return false
	case r == nil:
		s.fail(WhyRunFailed, errors.New("the executor gave neither a result nor an error"))
		return false
	}
	why := errors.New(r.Cause.String() + ": " + r.Detail)
	switch r.Cause {
	case executor.CauseExited, executor.CauseSignalled:
		return true
	case executor.CauseCancelled:
		if ctx.Err() == nil || !s.interrupted(context.Cause(ctx)) {
			s.fail(WhyRunFailed, why)
		}
	case executor.CauseWallTimeout, executor.CauseCPUTimeout:
		s.fail(WhyTimeout, why)
		s.outcome.Kind = runaway.TimedOut
	case executor.CauseUnknown, executor.CauseNotFound, executor.CauseNotExecutable:
		s.fail(WhyRunFailed, why)
	default:
		s.fail(WhyLimit, why)
	}
	s.outcome.Class = r.Cause.String()
	return false
}
