// SPDX-License-Identifier: Apache-2.0

package rlimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/internal/hostrun"
	"github.com/evoseal/containment/internal/cgroup"
	"github.com/evoseal/containment/internal/lease"
	"github.com/evoseal/containment/internal/supervise"
)

// setupTime bounds the set-up, which is mostly the copy of the workspace.
const setupTime = 5 * time.Minute

// Run executes the specification; see [executor.Executor].
func (e *Executor) Run(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
	begin := time.Now()
	if !e.users.enter() {
		return nil, executor.ErrClosed
	}
	defer func() {
		if e.users.leave() {
			if err := e.release(); err != nil {
				e.config.Logger.WarnContext(ctx, "the last run after Close could not release everything", slog.Any("error", err))
			}
		}
	}()
	if err := e.admit(ctx, spec); err != nil {
		return nil, err
	}
	r := &run{ex: e, spec: spec, limits: spec.Limits.WithDefaults(), uid: -1, gid: -1}
	result, err := r.execute(ctx, begin)
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

// run is one run with everything that it holds.
type run struct {
	ex       *Executor
	spec     executor.Spec
	limits   executor.Limits
	uid, gid int // of the payload; -1: the caller's

	id      string
	lease   *lease.Lease
	slot    *lease.Slot
	dir     string // the run's scratch directory
	mounted bool
	lock    *os.File // the scratch directory, locked as long as the run or its guard lives
	work    *os.File // the copy of the workspace, opened before the payload can change its mode
	places  []place  // what Landlock grants this run
	group   *cgroup.Group
	stdio   *hostrun.Stdio
	proc    *supervise.Process
	lost    bool // nobody has proven that the tree is dead

	full int64 // bytes or inodes in use when the file system was seen full
}

func (r *run) workspace() string { return filepath.Join(r.dir, "work") }

// execute takes the run from nothing to its verdict. Whatever it made, cleanup removes.
func (r *run) execute(ctx context.Context, begin time.Time) (*executor.Result, error) {
	setup, cancel := context.WithTimeoutCause(ctx, setupTime, errors.New("the set-up took too long"))
	defer cancel()
	if err := r.prepare(setup); err != nil {
		if cause := ctx.Err(); cause != nil {
			return &executor.Result{Cause: executor.CauseCancelled, ExitCode: -1, Detail: "cancelled during set-up"}, nil
		}
		return nil, err
	}
	if err := r.start(); err != nil {
		return nil, err
	}
	ending, err := hostrun.Watch{
		Process: r.proc, Wall: r.limits.Wall, CPU: r.limits.CPU, Over: r.stdio.Over, Poll: r.poll,
	}.Wait(ctx)
	if err = errors.Join(err, r.buried(ending)); err != nil {
		return nil, err
	}
	result := &executor.Result{Enforced: r.enforced()}
	if err := r.judge(result, ending); err != nil {
		return nil, err
	}
	result.Timing = hostrun.Timing(begin, ending)
	return result, r.artifacts(ctx, result)
}

// prepare makes everything that the payload needs.
func (r *run) prepare(ctx context.Context) error {
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"lease", r.takeLease},
		{"scratch", r.makeScratch},
		{"mount", r.openMounts},
		{"workspace", r.copyWorkspace},
		{"directory", r.checkDir},
		{"cgroup", r.makeCgroup},
		{"streams", func(context.Context) (err error) {
			r.stdio, err = hostrun.OpenStdio(&r.spec, r.limits.Output, r.uid, r.gid)
			return err
		}},
	} {
		if err := step.do(ctx); err != nil {
			return &executor.SetupError{Step: step.name, Err: err}
		}
	}
	return nil
}

// start hands the payload to a guard.
func (r *run) start() (err error) {
	job, files, err := r.job()
	if err == nil {
		if files.Ruleset != nil {
			defer files.Ruleset.Close()
		}
		r.proc, err = r.ex.server.Start(job, files)
	}
	if err != nil {
		return &executor.SetupError{Step: "guard", Err: err}
	}
	r.stdio.Started()
	r.lost = true // until the guard says otherwise
	return nil
}

func (r *run) job() (supervise.Job, supervise.Files, error) {
	e := r.ex
	job := supervise.Job{
		Programs: programs(r.spec),
		Args:     r.spec.Args,
		Env:      r.spec.Environ(filepath.Join(r.dir, "home"), filepath.Join(r.dir, "tmp")),
		Dir:      filepath.Join(r.workspace(), filepath.FromSlash(r.spec.Dir)),
		UID:      r.uid,
		GID:      r.gid,
		Reserved: r.slot != nil,
		Rlimits:  e.rlimits(r.limits),
		Affinity: e.affinity(r.limits.CPUs),
		Filter:   e.filterFor(r.spec),
		Sample:   !e.cgroups.Has(cgroup.CPUTime) || !e.cgroups.Has(cgroup.Processes),
	}
	for _, m := range r.spec.Mounts {
		job.Reachable = append(job.Reachable, m.Source)
	}
	files := supervise.Files{
		Stdin: r.stdio.Payload[0], Stdout: r.stdio.Payload[1], Stderr: r.stdio.Payload[2], Lock: r.lock,
	}
	if r.group != nil && e.joins {
		files.Cgroups = r.group.JoinFiles()
	} else if r.group != nil {
		files.Into, files.Cgroups = r.group.Into()
	}
	var err error
	if e.landlock != nil {
		files.Ruleset, err = e.landlock.ruleset(r.places)
	}
	return job, files, err
}

// filterFor: with the caller's uid, a declared mount or a readable path of the configuration may hold files of the caller,
// and opening one to read would be enough to change its mode.
func (e *Executor) filterFor(spec executor.Spec) []byte {
	if len(spec.Mounts) > 0 || len(e.config.Reads) > 0 {
		return e.strict
	}
	return e.filter
}

// programs returns the paths at which the payload's process looks for its program, in its own view.
func programs(spec executor.Spec) []string {
	program := spec.Args[0]
	if strings.Contains(program, "/") {
		return []string{program}
	}
	search, ok := spec.Env["PATH"]
	if !ok {
		search = executor.DefaultPath
	}
	var list []string
	for _, dir := range filepath.SplitList(search) {
		if dir == "" {
			dir = "." // as execvp reads an empty element
		}
		list = append(list, dir+"/"+program)
	}
	return list
}

// buried waits for the guard's last word and demands the proof that the tree is dead.
func (r *run) buried(ending hostrun.Ending) error {
	if err := r.proc.Wait(guardTime); err != nil {
		return fmt.Errorf("%w: %w", executor.ErrLost, err)
	}
	if ending.Tree != nil {
		r.lost = false
		return nil
	}
	if ending.Failed != nil {
		r.lost = false // there was no payload
		return nil
	}
	return fmt.Errorf("%w: its guard was killed", executor.ErrLost)
}

// guardTime bounds the wait for a guard that has nothing left to do.
const guardTime = 5 * time.Second

// openMounts opens what the specification declares; it must be there before the run starts.
func (r *run) openMounts(context.Context) error {
	if r.ex.landlock == nil {
		for _, m := range r.spec.Mounts {
			if _, err := os.Stat(m.Source); err != nil {
				return err
			}
		}
		return nil
	}
	for _, m := range r.spec.Mounts {
		p, err := openPlace(m.Source, readRights)
		if err != nil {
			return err
		}
		r.places = append(r.places, p)
		if err := p.notRoot(); err != nil {
			return err
		}
	}
	return nil
}
