// SPDX-License-Identifier: Apache-2.0

package rlimit

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/internal/artifact"
	"github.com/evoseal/containment/executor/internal/hostrun"
	"github.com/evoseal/containment/internal/cgroup"
	"github.com/evoseal/containment/internal/supervise"
)

const (
	extractTime = time.Minute      // for copying artifacts
	buryTime    = 10 * time.Second // for killing what a lost guard left
)

func (r *run) makeCgroup(context.Context) (err error) {
	if !r.ex.cgroups.Any() {
		return nil
	}
	r.group, err = r.ex.cgroups.Create(r.groupName(), cgroup.Limits{
		Memory: r.limits.Memory, Processes: r.limits.Processes, CPUs: r.limits.CPUs,
	})
	return err
}

// judge reads every counter while it still exists and lets hostrun decide.
func (r *run) judge(result *executor.Result, ending hostrun.Ending) error {
	if err := r.setupError(ending.Failed); err != nil {
		return err
	}
	r.lookAtDisk()
	facts := hostrun.Facts{Ending: ending, Limits: r.limits, DiskFull: r.full}
	result.Stdout, result.Stderr, facts.Over = r.stdio.Finish()
	facts.Total = [2]int64{result.Stdout.Total, result.Stderr.Total}
	if err := r.count(&facts, &result.Usage); err != nil {
		return err
	}
	hostrun.Judge(result, facts)
	return nil
}

// setupError adds the path to an error about a mount.
func (r *run) setupError(e *supervise.Event) error {
	err := hostrun.SetupError(e)
	if err != nil && e.Step == supervise.StepReachable && int(e.Detail) < len(r.spec.Mounts) {
		source := r.spec.Mounts[e.Detail].Source
		return &executor.SetupError{Step: e.Step.String(), Err: fmt.Errorf(
			"%s cannot be reached by the run's uid %d; give it and the directories above read and search permission: %w",
			source, r.uid, syscall.Errno(e.Errno))}
	}
	return err
}

// count fills in the counters of the cgroups, and what was sampled where there are none.
func (r *run) count(f *hostrun.Facts, u *executor.Usage) error {
	*u = hostrun.Usage(f.Ending)
	if f.Ending.CPU > 0 {
		f.CPU, f.CPUBy = f.Ending.CPU, executor.BySupervisor
	}
	// The kernel counts no refusals of RLIMIT_NPROC; a reserved uid with as many tasks as it may have is what can be seen.
	if r.slot != nil && f.Ending.Tasks >= r.limits.Processes {
		f.TaskDenied, f.TasksBy = int64(f.Ending.Tasks), executor.BySupervisor
	}
	if r.group == nil {
		return nil
	}
	s, err := r.group.Stats()
	if err != nil {
		return err
	}
	cgroups := r.ex.cgroups
	if cgroups.Has(cgroup.Memory) {
		f.OOMKills, f.OOMBy = s.OOMKills, mechanism(cgroups, cgroup.Memory)
		if s.PeakMemory > 0 {
			u.PeakMemory, u.PeakMemoryBy = s.PeakMemory, f.OOMBy
		}
	}
	if cgroups.Has(cgroup.Processes) {
		f.TaskDenied, f.TasksBy = s.ProcessLimitHits, mechanism(cgroups, cgroup.Processes)
		if s.PeakProcesses > 0 {
			u.PeakProcesses, u.PeakProcessesBy = int(s.PeakProcesses), f.TasksBy
		}
	}
	if cgroups.Has(cgroup.CPUTime) {
		f.CPU, f.CPUBy = s.CPU, mechanism(cgroups, cgroup.CPUTime)
		u.User, u.System, u.CPUBy = s.User, s.System, f.CPUBy
	}
	return nil
}

// artifacts copies what was declared, now that the tree is dead and the view is still there.
func (r *run) artifacts(ctx context.Context, result *executor.Result) error {
	if len(r.spec.Artifacts) == 0 {
		return nil
	}
	// A cancelled caller still gets what the run left; the time for it is ours.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), extractTime)
	defer cancel()
	// A payload with our uid may have closed its workspace even to us.
	if r.uid < 0 {
		if err := r.work.Chmod(0o700); err != nil {
			return fmt.Errorf("artifacts: %w", err)
		}
	}
	var err error
	result.Artifacts, result.Refused, err = artifact.Extract(ctx, artifact.Request{
		ID: r.id, Root: r.work, Patterns: r.spec.Artifacts, Dest: r.spec.ArtifactDir,
		Exclude: r.spec.Hidden, ExcludeNames: executor.DefaultHidden(),
		MaxBytes: r.limits.ArtifactBytes, MaxFiles: r.limits.ArtifactFiles,
	})
	return err
}

// bury kills what may live although the guard is gone.
func (r *run) bury() error {
	if r.proc == nil || !r.lost {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), buryTime)
	defer cancel()
	var errs []error
	if r.group != nil {
		errs = append(errs, r.group.Kill(ctx))
	}
	if r.slot != nil {
		errs = append(errs, supervise.KillUser(ctx, r.uid))
	}
	return errors.Join(errs...)
}

func (r *run) removeCgroup() error {
	if r.group == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), buryTime)
	defer cancel()
	return r.group.Remove(ctx)
}

func mechanism(h *cgroup.Host, c cgroup.Controller) executor.Mechanism {
	if h.Version(c) == 2 {
		return executor.ByCgroupV2
	}
	return executor.ByCgroupV1
}
