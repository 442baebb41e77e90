// SPDX-License-Identifier: Apache-2.0

package rlimit

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/internal/hostrun"
	"github.com/evoseal/containment/internal/cgroup"
	"github.com/evoseal/containment/internal/supervise"
)

// Run executes the specification; see [executor.Executor].
func (e *Executor) Run(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
	begin := time.Now()
	if !e.host.Enter() {
		return nil, executor.ErrClosed
	}
	defer func() {
		if e.host.Leave() {
			if err := e.release(); err != nil {
				e.host.Logger.WarnContext(ctx, "the last run after Close could not release everything", slog.Any("error", err))
			}
		}
	}()
	if err := e.admit(ctx, spec); err != nil {
		return nil, err
	}
	r := &run{Run: e.host.NewRun(spec), ex: e}
	return r.Do(ctx, begin, e.caps, r)
}

// run is one run, with what this tier adds.
type run struct {
	*hostrun.Run
	ex     *Executor
	places []place // what Landlock grants this run
}

// The run's own directories beside the workspace.
const homeDir, tmpDir = "home", "tmp"

// Steps are the preparations in their order.
func (r *run) Steps() []hostrun.Step {
	return []hostrun.Step{
		{Name: "lease", Do: r.TakeLease},
		{Name: "scratch", Do: r.makeScratch},
		{Name: "mount", Do: r.openMounts},
		{Name: "workspace", Do: r.copyWorkspace},
		{Name: "workspace", Do: r.BoundDisk},
		{Name: "directory", Do: r.CheckDir},
		{Name: "cgroup", Do: r.MakeCgroup},
		{Name: "streams", Do: r.OpenStdio},
	}
}

// Job is what the guard starts: the payload itself, restricted between fork and execve.
func (r *run) Job() (supervise.Job, supervise.Files, error) {
	e := r.ex
	job := supervise.Job{
		Programs: hostrun.Programs(r.Spec),
		Args:     r.Spec.Args,
		Env:      r.Spec.Environ(filepath.Join(r.Dir, homeDir), filepath.Join(r.Dir, tmpDir)),
		Dir:      filepath.Join(r.Workspace(), filepath.FromSlash(r.Spec.Dir)),
		UID:      r.UID,
		GID:      r.GID,
		Reserved: r.Slot != nil,
		Rlimits:  r.Rlimits(),
		Affinity: e.host.Affinity(r.Limits.CPUs),
		Filter:   e.filterFor(r.Spec),
		Sample:   !e.host.Cgroups.Has(cgroup.CPUTime) || !e.host.Cgroups.Has(cgroup.Processes),
	}
	for _, m := range r.Spec.Mounts {
		job.Reachable = append(job.Reachable, m.Source)
	}
	var files supervise.Files
	files.Into, files.Cgroups = r.CgroupFiles()
	if e.landlock == nil {
		return job, files, nil
	}
	var err error
	if files.Ruleset, err = e.landlock.ruleset(r.places); err == nil {
		r.Held = append(r.Held, files.Ruleset)
	}
	return job, files, err
}

// Holds names the main mechanism behind a capability.
func (r *run) Holds(c executor.Capability) executor.Mechanism {
	switch c {
	case executor.WorkspaceIsolated, executor.HostFilesHidden:
		return executor.ByLandlock
	case executor.NetworkOff, executor.SyscallsFiltered:
		return executor.BySeccomp
	case executor.ProtectedReadOnly:
		return executor.ByUID
	case executor.UnprivilegedUser, executor.TreeKilled:
		if r.Host.Root {
			return executor.ByUID
		}
		if c == executor.UnprivilegedUser {
			return executor.ByLandlock
		}
		return r.Host.Mechanism(cgroup.Kill)
	}
	return executor.BySupervisor
}

// filterFor: with the caller's uid, a declared mount or a readable path of the configuration may hold files of the caller,
// and opening one to read would be enough to change its mode.
func (e *Executor) filterFor(spec executor.Spec) []byte {
	if len(spec.Mounts) > 0 || len(e.config.Reads) > 0 {
		return e.strict
	}
	return e.filter
}

// makeScratch makes the run's directories and grants them.
func (r *run) makeScratch(context.Context) error {
	if err := r.MakeScratch(homeDir, tmpDir); err != nil {
		return err
	}
	if r.ex.landlock == nil {
		return nil
	}
	for _, name := range []string{hostrun.Work, homeDir, tmpDir} {
		if err := r.grant(filepath.Join(r.Dir, name), writeRights); err != nil {
			return err
		}
	}
	return nil
}

// grant opens a path for as long as the run lasts.
func (r *run) grant(path string, rights uint64) error {
	p, err := openPlace(path, rights)
	if err != nil {
		return err
	}
	r.places, r.Held = append(r.places, p), append(r.Held, p.file)
	return p.notRoot()
}

// copyWorkspace: a run with another uid can be kept from changing files; for one with the caller's own, what it must not
// see is left out.
func (r *run) copyWorkspace(ctx context.Context) error {
	o := r.CopyOptions()
	if o.Owner != nil {
		o.ReadOnly, o.Sealed = r.Spec.ReadOnly, r.Spec.Hidden
	} else {
		o.Omit = r.Spec.Hidden
	}
	return r.CopyWorkspace(ctx, o)
}

// openMounts opens what the specification declares; it must be there before the run starts.
func (r *run) openMounts(context.Context) error {
	for _, m := range r.Spec.Mounts {
		if r.ex.landlock == nil {
			if _, err := os.Stat(m.Source); err != nil {
				return err
			}
			continue
		}
		if err := r.grant(m.Source, readRights); err != nil {
			return err
		}
	}
	return nil
}
