// SPDX-License-Identifier: Apache-2.0

package rlimit

import (
	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/cgroup"
)

// enforced says for every limit and every promised capability what really holds it in this run.
func (r *run) enforced() []executor.Enforcement {
	l := r.limits
	list := []executor.Enforcement{
		{Limit: "Wall", By: executor.BySupervisor, Scope: executor.PerRun, Value: int64(l.Wall)},
		r.enforcedCPU(),
		r.enforcedCPUs(),
		r.enforcedMemory(),
		r.enforcedDisk(),
		r.byRlimit("FileSize", unix.RLIMIT_FSIZE, "SIGXFSZ; a program that ignores it sees EFBIG"),
		{Limit: "Output", By: executor.BySupervisor, Scope: executor.PerRun, Value: l.Output, Note: "for each of two streams"},
		{Limit: "ArtifactBytes", By: executor.BySupervisor, Scope: executor.PerRun, Value: l.ArtifactBytes},
		r.enforcedProcesses(),
		r.byRlimit("OpenFiles", unix.RLIMIT_NOFILE, ""),
		{Limit: "ArtifactFiles", By: executor.BySupervisor, Scope: executor.PerRun, Value: int64(l.ArtifactFiles)},
	}
	for one := range r.ex.caps.All() {
		list = append(list, executor.Enforcement{Limit: one.String(), By: r.holds(one), Scope: executor.PerRun})
	}
	return list
}

// byRlimit reports the value that the payload's process was given.
func (r *run) byRlimit(limit string, resource int, note string) executor.Enforcement {
	e := executor.Enforcement{Limit: limit, By: executor.ByNone, Scope: executor.PerProcess, Note: note}
	for _, one := range r.ex.rlimits(r.limits) {
		if one.Resource == resource {
			e.By, e.Value = executor.ByRlimit, int64(one.Soft)
		}
	}
	return e
}

func (r *run) enforcedCPU() executor.Enforcement {
	e := executor.Enforcement{Limit: "CPU", Scope: executor.PerRun, Value: int64(r.limits.CPU)}
	if r.ex.cgroups.Has(cgroup.CPUTime) {
		e.By = mechanism(r.ex.cgroups, cgroup.CPUTime)
		e.Note = "the counter is read 40 times a second; RLIMIT_CPU for each process as well"
		return e
	}
	e.By = executor.BySupervisor
	e.Note = "sampled 10 times a second: children that nobody waits for and that live shorter are not seen; RLIMIT_CPU for each process as well"
	return e
}

func (r *run) enforcedCPUs() executor.Enforcement {
	e := executor.Enforcement{Limit: "CPUs", Scope: executor.PerRun, Value: int64(r.limits.CPUs * 1000), Note: "thousandths of a processor"}
	if r.ex.cgroups.Has(cgroup.CPUs) {
		e.By = mechanism(r.ex.cgroups, cgroup.CPUs)
		return e
	}
	e.By, e.Value = executor.ByAffinity, int64(affinityCount(r.limits.CPUs))*1000
	e.Note += "; whole processors, and the filter refuses sched_setaffinity"
	return e
}

func (r *run) enforcedMemory() executor.Enforcement {
	if !r.ex.cgroups.Has(cgroup.Memory) {
		return r.byRlimit("Memory", unix.RLIMIT_DATA, "the data segment of each process; there is no bound on the sum")
	}
	e := executor.Enforcement{
		Limit: "Memory", By: mechanism(r.ex.cgroups, cgroup.Memory), Scope: executor.PerRun, Value: r.group.Set().Memory,
		Note: r.group.Set().MemoryNote,
	}
	if r.mounted && e.Note == "" {
		e.Note = "files that the run writes count as memory"
	}
	return e
}

func (r *run) enforcedDisk() executor.Enforcement {
	if r.mounted {
		return executor.Enforcement{Limit: "Disk", By: executor.ByTmpfs, Scope: executor.PerRun, Value: r.limits.Disk}
	}
	return executor.Enforcement{
		Limit: "Disk", By: executor.ByNone, Scope: executor.PerRun,
		Note: "the scratch directory is on the host's file system; only FileSize bounds each file",
	}
}

func (r *run) enforcedProcesses() executor.Enforcement {
	switch {
	case r.ex.cgroups.Has(cgroup.Processes):
		return executor.Enforcement{
			Limit: "Processes", By: mechanism(r.ex.cgroups, cgroup.Processes), Scope: executor.PerRun,
			Value: int64(r.group.Set().Processes),
		}
	case r.ex.root:
		e := r.byRlimit("Processes", unix.RLIMIT_NPROC, "the uid is reserved for the run; the host learns of a refusal only if sampling sees the run at its limit")
		e.Scope = executor.PerUID
		return e
	}
	return executor.Enforcement{
		Limit: "Processes", By: executor.ByNone, Scope: executor.PerUID, Note: "the uid is the caller's own; there is no bound for one run",
	}
}

// holds names the main mechanism behind a capability.
func (r *run) holds(c executor.Capability) executor.Mechanism {
	switch c {
	case executor.WorkspaceIsolated, executor.HostFilesHidden:
		return executor.ByLandlock
	case executor.NetworkOff, executor.SyscallsFiltered:
		return executor.BySeccomp
	case executor.ProtectedReadOnly:
		return executor.ByUID
	case executor.UnprivilegedUser, executor.TreeKilled:
		if r.ex.root {
			return executor.ByUID
		}
		if c == executor.UnprivilegedUser {
			return executor.ByLandlock
		}
		return mechanism(r.ex.cgroups, cgroup.Kill)
	case executor.MemoryBounded:
		return mechanism(r.ex.cgroups, cgroup.Memory)
	case executor.ProcessesBounded:
		return r.enforcedProcesses().By
	case executor.CPUBounded:
		return r.enforcedCPU().By
	case executor.DiskBounded:
		return executor.ByTmpfs
	}
	return executor.BySupervisor
}
