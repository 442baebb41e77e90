// SPDX-License-Identifier: Apache-2.0

package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"strconv"
	"syscall"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/internal/hostrun"
	"github.com/evoseal/containment/internal/cgroup"
	"github.com/evoseal/containment/internal/reexec"
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
	mounts, err := e.admit(ctx, spec)
	if err != nil {
		return nil, err
	}
	r := &run{Run: e.host.NewRun(spec), ex: e, mounts: mounts}
	return r.Do(ctx, begin, e.caps, r)
}

// admit decides whether the run may start at all. Nothing has been made when it refuses.
func (e *Executor) admit(ctx context.Context, spec executor.Spec) ([]mount, error) {
	if err := e.host.Admit(ctx, spec, e.caps, "tier 1.5"); err != nil {
		return nil, err
	}
	if err := e.host.Overlaps(spec.Workspace, e.readable); err != nil {
		return nil, err
	}
	mounts, err := targets(spec)
	if err != nil {
		return nil, e.host.Unsupported(err.Error(), "choose another target", nil)
	}
	return mounts, nil
}

// run is one run, with what this tier adds.
type run struct {
	*hostrun.Run
	ex          *Executor
	mounts      []mount
	rules       []rule
	diagnostics *os.File // what bubblewrap prints
	output      *os.File // its other end, bubblewrap's
}

// The run's own directories beside the workspace, on a file system of its own.
const homeDir, tmpDir, shmDir = "home", "tmp", "shm"

// Steps are the preparations in their order.
func (r *run) Steps() []hostrun.Step {
	return []hostrun.Step{
		{Name: "mount", Do: r.lookAtMounts},
		{Name: "lease", Do: r.TakeLease},
		{Name: "scratch", Do: func(context.Context) error { return r.MakeScratch(homeDir, tmpDir, shmDir) }},
		{Name: "workspace", Do: r.copyWorkspace},
		{Name: "mount", Do: r.copyMounts},
		{Name: "directory", Do: r.CheckDir},
		{Name: "workspace", Do: r.protect},
		{Name: "workspace", Do: r.BoundDisk},
		{Name: "cgroup", Do: r.MakeCgroup},
		{Name: "streams", Do: r.OpenStdio},
		{Name: "sandbox", Do: r.openDiagnostics},
	}
}

func (r *run) openDiagnostics(context.Context) (err error) {
	r.diagnostics, r.output, err = os.Pipe()
	if err == nil {
		r.Held = append(r.Held, r.diagnostics, r.output)
	}
	return err
}

// arguments are bubblewrap's: the whole view. What comes later is mounted over what is there already.
func (r *run) arguments() []byte {
	var a args
	a.isolation()
	a.writable(r.Dir, r.ex.host.Root, r.Limits.Disk)
	a.system(r.ex.view, r.ex.masks)
	for _, m := range r.mounts {
		if _, inside := m.inWorkspace(); inside {
			continue
		}
		if m.copied != "" {
			a.add("--bind", m.copied, m.Target)
		} else {
			a.add("--ro-bind", m.Source, m.Target)
		}
	}
	r.workspace(&a)
	a.finish()
	return a.bytes()
}

// Job is what the guard starts: bubblewrap, and behind it our init with the payload.
func (r *run) Job() (supervise.Job, supervise.Files, error) {
	e := r.ex
	list, err := reexec.Sealed(r.arguments())
	if err != nil {
		return supervise.Job{}, supervise.Files{}, err
	}
	r.Held = append(r.Held, list)
	if _, err := list.Seek(0, io.SeekStart); err != nil { // bubblewrap reads from where it is
		return supervise.Job{}, supervise.Files{}, err
	}
	job := supervise.Job{
		Programs: hostrun.Programs(r.Spec),
		Args:     r.Spec.Args,
		Env:      r.Spec.Environ(Home, TempDir),
		Dir:      path.Join(Workspace, r.Spec.Dir),
		UID:      r.UID,
		GID:      r.GID,
		Reserved: r.Slot != nil,
		Rlimits:  r.Rlimits(),
		Affinity: e.host.Affinity(r.Limits.CPUs),
		Filter:   e.filter,
		Sample:   !e.host.Cgroups.Has(cgroup.CPUTime) || !e.host.Cgroups.Has(cgroup.Processes),
		Wrapper: &supervise.Wrapper{
			Program: e.program,
			Args:    []string{"bwrap", "--args", strconv.Itoa(supervise.WrapperArgsFD), "--", supervise.InitPath},
			UID:     UID, GID: GID,
		},
	}
	for _, m := range r.Spec.Mounts {
		job.Reachable = append(job.Reachable, m.Source)
	}
	files := supervise.Files{Wrapper: &supervise.WrapperFiles{Diagnostics: r.output, Args: list, Init: e.init}}
	files.Into, files.Cgroups = r.CgroupFiles()
	return job, files, nil
}

// Holds names the main mechanism behind a capability.
func (r *run) Holds(c executor.Capability) executor.Mechanism {
	switch c {
	case executor.HostEnvHidden, executor.TreeKilled, executor.WorkspaceIsolated, executor.ProtectedReadOnly,
		executor.HostFilesHidden, executor.NetworkOff:
		return executor.ByNamespace
	case executor.UnprivilegedUser:
		if r.Host.Root {
			return executor.ByUID
		}
		return executor.ByNamespace
	case executor.SyscallsFiltered:
		return executor.BySeccomp
	}
	return executor.BySupervisor
}

// What is read of bubblewrap's words, and how long that may take.
const (
	maxDiagnostics  = 4 << 10
	diagnosticsTime = time.Second
)

// Explain says what bubblewrap meant.
func (r *run) Explain(e *supervise.Event, err error) error {
	if e.Step != supervise.StepWrapper {
		return err
	}
	if e.Errno != 0 {
		err := &os.PathError{Op: "exec", Path: r.ex.program, Err: syscall.Errno(e.Errno)}
		return &executor.SetupError{Step: "sandbox", Err: err}
	}
	// Nobody else has the other end any more; nothing depends on that.
	late := r.diagnostics.SetReadDeadline(time.Now().Add(diagnosticsTime))
	closed := r.output.Close()
	text, readErr := io.ReadAll(io.LimitReader(r.diagnostics, maxDiagnostics))
	if err := errors.Join(late, closed, readErr); err != nil {
		return &executor.SetupError{Step: "sandbox", Err: fmt.Errorf("bubblewrap's message: %w", err)}
	}
	return &executor.SetupError{Step: "sandbox", Err: classify(string(text), readFacts())}
}
