// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd/internal/box"
	"github.com/evoseal/containment/executor/internal/hostrun"
	"github.com/evoseal/containment/internal/supervise"
)

// Deadlines of the phases that are ours.
const (
	setupTime = 5 * time.Minute  // the copy of the workspace and the box
	idleTime  = time.Minute      // of a box that is made for one run: until the job comes
	slackTime = 30 * time.Second // beyond the wall limit: the start, the report
	graceTime = 2 * time.Second  // the supervisor's own timers come first

	slowest = 8 << 20 // bytes per second at which the copy goes in and artifacts come out on a busy machine
)

// allowance is the time from the job to the last word that a run may take.
func (r *run) allowance() time.Duration {
	transfer := min(r.plan.Put/slowest+r.limits.ArtifactBytes/slowest, int64(longest/time.Second))
	return r.limits.Wall + slackTime + time.Duration(transfer)*time.Second
}

// Run executes the specification; see [executor.Executor].
func (e *Executor) Run(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
	begin := time.Now()
	if !e.host.Enter() {
		return nil, executor.ErrClosed
	}
	defer func() {
		if e.host.Leave() {
			if err := e.release(); err != nil {
				e.config.Logger.WarnContext(ctx, "the last run after Close could not release everything", slog.Any("error", err))
			}
		}
	}()
	if err := e.host.Admit(ctx, spec, e.caps, "tier 2"); err != nil {
		return nil, err
	}
	if err := e.host.Overlaps(spec.Workspace, e.readable); err != nil {
		return nil, err
	}
	r := e.newRun(spec)
	return r.do(ctx, begin)
}

// newRun makes nothing yet. The specification is valid.
func (e *Executor) newRun(spec executor.Spec) *run {
	l := spec.Limits.WithDefaults()
	l.Wall = min(l.Wall, longest) // our own times come on top of it
	return &run{ex: e, spec: spec, limits: l}
}

// run is one run with everything that it holds.
type run struct {
	ex     *Executor
	spec   executor.Spec
	limits executor.Limits // with defaults

	want      wanted
	packed    *box.Packed
	plan      plan
	box       *container
	figures   figures
	refused   int64         // tasks that the kernel refused to make
	peakTasks int64         // of the cgroup
	cpu       time.Duration // of the box since its hello
	cpuErr    error
	boot      string
	warm      bool
}

// do takes the run from nothing to its verdict and removes whatever was made for it.
func (r *run) do(ctx context.Context, begin time.Time) (*executor.Result, error) {
	result, err := r.execute(ctx, begin)
	cleaned := r.cleanup(ctx)
	switch {
	case err != nil:
		return nil, errors.Join(err, cleaned)
	case cleaned != nil:
		return nil, cleaned
	}
	result.Timing.Teardown = time.Since(begin) - result.Timing.Setup - result.Timing.Run
	return result, nil
}

func (r *run) cleanup(ctx context.Context) error {
	if r.packed != nil {
		if err := r.packed.Close(); err != nil {
			return errors.Join(err, r.destroy(ctx))
		}
	}
	return r.destroy(ctx)
}

// destroy removes the box. Of a warm one every process is dead when Run returns, and with process 1 the kernel has
// dropped its mounts; the record, the group and the directory that are left go beside the next run.
func (r *run) destroy(ctx context.Context) error {
	if r.box == nil {
		return nil
	}
	if r.warm && r.box.dead(ctx) && r.ex.pool.bury(r.box) {
		return nil
	}
	return r.box.destroy(ctx)
}

func (r *run) execute(ctx context.Context, begin time.Time) (*executor.Result, error) {
	setup, cancel := context.WithTimeoutCause(ctx, setupTime, errors.New("the set-up took too long"))
	defer cancel()
	if err := r.prepare(setup); err != nil {
		return notSetUp(ctx, err)
	}
	ending, err := r.work(ctx)
	if r.diedUnused(ctx, ending, err) {
		if err := r.replace(setup); err != nil {
			return notSetUp(ctx, err)
		}
		ending, err = r.work(ctx)
	}
	counted := r.count(ctx)
	if err != nil && !errors.Is(err, executor.ErrLost) {
		return nil, err
	}
	if lost := r.lost(err); lost != nil {
		return nil, lost
	}
	if err := hostrun.SetupError(ending.Failed); err != nil {
		return nil, err
	}
	if counted != nil {
		return nil, fmt.Errorf("%w: %w", executor.ErrLost, counted)
	}
	result := &executor.Result{
		Stdout: ending.Stdout, Stderr: ending.Stderr, Artifacts: ending.Artifacts, Refused: ending.Refused,
		Enforced: r.enforced(), Usage: r.usage(ending), Timing: hostrun.Timing(begin, ending.Ending),
	}
	hostrun.Judge(result, r.facts(ending))
	return result, nil
}

// notSetUp is what becomes of a run that the caller gave up while its box was made, or for which none could be made.
func notSetUp(ctx context.Context, err error) (*executor.Result, error) {
	if ctx.Err() != nil && !errors.As(err, new(*executor.CleanupError)) {
		return &executor.Result{Cause: executor.CauseCancelled, ExitCode: -1, Detail: "cancelled during set-up"}, nil
	}
	return nil, err
}

// prepare packs the workspace, so that its size is known, and gets a box for it.
func (r *run) prepare(ctx context.Context) (err error) {
	if r.want, err = r.ex.look(r.spec); err != nil {
		return err
	}
	rules := box.Rules{
		MaxBytes: r.ex.config.WorkspaceBytes, MaxFiles: r.ex.config.WorkspaceFiles,
		OmitNames: executor.DefaultHidden(), Omit: r.spec.Hidden, ReadOnly: r.spec.ReadOnly, Overlay: r.spec.Overlay,
	}
	if r.packed, err = box.Pack(ctx, r.ex.dir(), r.spec.Workspace, rules); err != nil {
		return &executor.SetupError{Step: "workspace", Err: err}
	}
	if err := r.makePlan(); err != nil {
		return err
	}
	if r.box = r.ex.pool.take(r.plan, r.allowance()); r.box != nil {
		r.warm = true
		return nil
	}
	return r.create(ctx)
}

// diedUnused reports whether a box that had waited was dead before the payload was: then nothing ran, and a box that is
// made for it can do the job. Input that was read from the caller is gone, so a run with any is lost.
func (r *run) diedUnused(ctx context.Context, ending box.Ending, err error) bool {
	if !r.warm || !errors.Is(err, executor.ErrLost) || !ending.Started.IsZero() || r.spec.Stdin != nil || ctx.Err() != nil {
		return false
	}
	select {
	case <-r.box.exited:
		return r.box.exit.err == nil
	case <-time.After(drainTime):
		return false
	}
}

// replace makes a box in place of one that died.
func (r *run) replace(ctx context.Context) error {
	dead := r.box
	r.box, r.warm = nil, false
	if err := dead.destroy(ctx); err != nil {
		return err
	}
	return r.create(ctx)
}

// create makes a box for this run alone.
func (r *run) create(ctx context.Context) (err error) {
	d := deadlines{idle: idleTime, hard: idleTime + r.allowance()}
	r.box, err = r.ex.create(ctx, r.plan, d, r.spec.Label)
	return err
}

// makePlan says which box the run must have.
func (r *run) makePlan() error {
	e := r.ex
	root, err := e.skeleton(r.want.points)
	if err != nil {
		return &executor.SetupError{Step: "root", Err: err}
	}
	r.plan = plan{Args: e.supervisor.Args, GVisor: e.runtime.gvisor, OOMScore: leastOOMScore()}
	if root != "" {
		r.plan.Root = e.see(root)
	}
	r.plan.Binds = r.want.binds
	stats := r.packed.Stats()
	r.plan.size(r.limits, stats.Bytes, stats.Files)
	return nil
}

// work has the box do the job. The supervisor keeps every limit by itself; what is here is for one that does not
// answer.
func (r *run) work(ctx context.Context) (box.Ending, error) {
	r.boot = r.box.hello.BootID
	stuck := time.AfterFunc(r.allowance()+graceTime, func() {
		ctx, cancel := apart(ctx)
		defer cancel()
		_ = r.ex.conn.killTask(ctx, r.box.id) // if that fails, clean-up says so
	})
	defer stuck.Stop()
	gone := make(chan struct{})
	defer close(gone)
	go r.interruptIfGone(gone)
	return r.box.session.Run(ctx, box.Job{
		Stage: supervise.Job{
			Programs: hostrun.Programs(r.spec), Args: r.spec.Args, Env: r.spec.Environ(box.Home, box.Temp),
			Dir: path.Join(box.Workspace, r.spec.Dir), UID: box.UID, GID: box.GID, Reserved: true,
			Rlimits: r.rlimits(), Filter: r.ex.filter,
		},
		Trees:  []box.Tree{{Packed: r.packed, Target: box.Workspace}},
		Limits: r.limits,
		Artifacts: box.Artifacts{
			Patterns: r.spec.Artifacts, Dest: r.artifactDir(), ID: r.box.id, Exclude: r.spec.Hidden,
			ExcludeNames: executor.DefaultHidden(),
		},
		Stdin: r.spec.Stdin, Stdout: r.spec.Stdout, Stderr: r.spec.Stderr,
		Spent: r.spent(), Ended: func() { r.countCPU(ctx) },
	})
}

// drainTime is how long the stream may still have something to say after process 1 ended.
const drainTime = time.Second

// interruptIfGone ends the session if process 1 ended and the stream does not: a shim that was killed leaves no end of
// file.
func (r *run) interruptIfGone(done <-chan struct{}) {
	select {
	case <-done:
		return
	case <-r.box.exited:
	}
	select {
	case <-done:
	case <-time.After(drainTime):
		_ = r.box.session.Close()
	}
}

func (r *run) artifactDir() string {
	if len(r.spec.Artifacts) == 0 {
		return ""
	}
	dir, err := filepath.Abs(r.spec.ArtifactDir)
	if err != nil {
		return r.spec.ArtifactDir
	}
	return dir
}

// lost decides whether a run whose report did not come has a verdict all the same: the kernel's own counter says why,
// if the whole box was killed for its memory.
func (r *run) lost(err error) error {
	if err == nil || r.figures.oomKills > 0 {
		return nil
	}
	if !r.box.running() {
		return fmt.Errorf("%w%s", err, r.box.lastWords())
	}
	return err
}

// leastOOMScore is where the kernel's choice of a victim may begin for a box: at that of an ordinary program, or of
// ours if we are worth less. Daemons are often exempt from that choice, and without this their boxes would be.
func leastOOMScore() int {
	text, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return 0
	}
	score, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return max(score, 0)
}
