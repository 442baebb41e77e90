// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/internal/artifact"
	"github.com/evoseal/containment/internal/cgroup"
	"github.com/evoseal/containment/internal/supervise"
)

const (
	extractTime = time.Minute      // for copying artifacts
	buryTime    = 10 * time.Second // for killing what a lost guard left
)

// MakeCgroup makes the run's cgroups, as far as this host lets the caller.
func (r *Run) MakeCgroup(context.Context) (err error) {
	if !r.Host.Cgroups.Any() {
		return nil
	}
	r.Group, err = r.Host.Cgroups.Create(r.groupName(), cgroup.Limits{
		Memory: r.Limits.Memory, Processes: r.Limits.Processes + r.Host.around(cgroup.Processes), CPUs: r.Limits.CPUs,
	})
	return err
}

// CgroupFiles are the way in: a directory in which a process is made, and files for what exists.
func (r *Run) CgroupFiles() (into *os.File, files []*os.File) {
	switch {
	case r.Group == nil:
		return nil, nil
	case r.Host.Joins:
		return nil, r.Group.JoinFiles()
	}
	return r.Group.Into()
}

// judge reads every counter while it still exists and lets hostrun decide.
func (r *Run) judge(result *executor.Result, ending Ending) error {
	r.lookAtDisk()
	facts := Facts{Ending: ending, Limits: r.Limits, DiskFull: r.full}
	result.Stdout, result.Stderr, facts.Over = r.Stdio.Finish()
	facts.Total = [2]int64{result.Stdout.Total, result.Stderr.Total}
	if err := r.count(&facts, &result.Usage); err != nil {
		return err
	}
	Judge(result, facts)
	return nil
}

// setupError adds the path to an error about a mount.
func (r *Run) setupError(e *supervise.Event) error {
	err := SetupError(e)
	if err != nil && e.Step == supervise.StepReachable && int(e.Detail) < len(r.Spec.Mounts) {
		source := r.Spec.Mounts[e.Detail].Source
		return &executor.SetupError{Step: e.Step.String(), Err: fmt.Errorf(
			"%s cannot be reached by the run's uid %d; give it and the directories above read and search permission: %w",
			source, r.UID, syscall.Errno(e.Errno))}
	}
	return err
}

// count fills in the counters of the cgroups, and what was sampled where there are none.
func (r *Run) count(f *Facts, u *executor.Usage) error {
	*u = Usage(f.Ending)
	if f.Ending.CPU > 0 {
		f.CPU, f.CPUBy = f.Ending.CPU, executor.BySupervisor
	}
	// What ends between two looks is in no sample. The kernel adds it up where it was waited for.
	if total := u.User + u.System; total > f.CPU {
		f.CPU, f.CPUBy = total, u.CPUBy
	}
	// The kernel counts no refusals of RLIMIT_NPROC; a run with as many tasks as it may have is what can be seen.
	if r.Host.Tasks.Scope != "" && f.Ending.Tasks >= r.Limits.Processes {
		f.TaskDenied, f.TasksBy = int64(f.Ending.Tasks), executor.BySupervisor
	}
	if r.Group == nil {
		return nil
	}
	s, err := r.Group.Stats()
	if err != nil {
		return err
	}
	cgroups := r.Host.Cgroups
	if cgroups.Has(cgroup.Memory) {
		f.OOMKills, f.OOMBy = s.OOMKills, r.Host.Mechanism(cgroup.Memory)
		if s.PeakMemory > 0 {
			u.PeakMemory, u.PeakMemoryBy = s.PeakMemory, f.OOMBy
		}
	}
	if cgroups.Has(cgroup.Processes) {
		f.TaskDenied, f.TasksBy = s.ProcessLimitHits, r.Host.Mechanism(cgroup.Processes)
		if s.PeakProcesses > 0 {
			u.PeakProcesses, u.PeakProcessesBy = max(int(s.PeakProcesses)-r.Host.around(cgroup.Processes), 0), f.TasksBy
		}
	}
	if cgroups.Has(cgroup.CPUTime) {
		f.CPU, f.CPUBy = s.CPU-r.before.total, r.Host.Mechanism(cgroup.CPUTime)
		u.User, u.System, u.CPUBy = s.User-r.before.user, s.System-r.before.system, f.CPUBy
	}
	return nil
}

// artifacts copies what was declared, now that the tree is dead and the view is still there.
func (r *Run) artifacts(ctx context.Context, result *executor.Result) error {
	if len(r.Spec.Artifacts) == 0 {
		return nil
	}
	// A cancelled caller still gets what the run left; the time for it is ours.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), extractTime)
	defer cancel()
	// A payload with our uid may have closed its workspace even to us.
	if r.UID < 0 {
		if err := r.work.Chmod(0o700); err != nil {
			return fmt.Errorf("artifacts: %w", err)
		}
	}
	var err error
	result.Artifacts, result.Refused, err = artifact.Extract(ctx, artifact.Request{
		ID: r.ID, Root: r.work, Patterns: r.Spec.Artifacts, Dest: r.Spec.ArtifactDir,
		Exclude: r.Spec.Hidden, ExcludeNames: executor.DefaultHidden(),
		MaxBytes: r.Limits.ArtifactBytes, MaxFiles: r.Limits.ArtifactFiles,
	})
	return err
}

// bury kills what may live although the guard is gone.
func (r *Run) bury() error {
	if r.process == nil || !r.lost {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), buryTime)
	defer cancel()
	var errs []error
	if r.Group != nil {
		errs = append(errs, r.Group.Kill(ctx))
	}
	if r.Slot != nil {
		errs = append(errs, supervise.KillUser(ctx, r.UID))
	}
	return errors.Join(errs...)
}

func (r *Run) removeCgroup() error {
	if r.Group == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), buryTime)
	defer cancel()
	return r.Group.Remove(ctx)
}
