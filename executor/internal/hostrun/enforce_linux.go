// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"cmp"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/cgroup"
)

// enforced says for every limit and every promised capability what really holds it in this run.
func (r *Run) enforced(caps executor.Capability, p Plan) []executor.Enforcement {
	l := r.Limits
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
	for one := range caps.All() {
		list = append(list, executor.Enforcement{Limit: one.String(), By: r.holds(p, one), Scope: executor.PerRun})
	}
	return list
}

// byRlimit reports the value that the payload's process was given.
func (r *Run) byRlimit(limit string, resource int, note string) executor.Enforcement {
	e := executor.Enforcement{Limit: limit, By: executor.ByNone, Scope: executor.PerProcess, Note: note}
	for _, one := range r.Rlimits() {
		if one.Resource == resource {
			e.By, e.Value = executor.ByRlimit, int64(one.Soft)
		}
	}
	return e
}

func (r *Run) enforcedCPU() executor.Enforcement {
	e := executor.Enforcement{Limit: "CPU", Scope: executor.PerRun, Value: int64(r.Limits.CPU)}
	if r.Host.Cgroups.Has(cgroup.CPUTime) {
		e.By = r.Host.Mechanism(cgroup.CPUTime)
		e.Note = "the counter is read 40 times a second; RLIMIT_CPU for each process as well"
		return e
	}
	e.By = executor.BySupervisor
	e.Note = "sampled 10 times a second: children that nobody waits for and that live shorter are not seen; RLIMIT_CPU for each process as well"
	return e
}

func (r *Run) enforcedCPUs() executor.Enforcement {
	e := executor.Enforcement{Limit: "CPUs", Scope: executor.PerRun, Value: int64(r.Limits.CPUs * 1000), Note: "thousandths of a processor"}
	if r.Host.Cgroups.Has(cgroup.CPUs) {
		e.By = r.Host.Mechanism(cgroup.CPUs)
		return e
	}
	e.By, e.Value = executor.ByAffinity, int64(affinityCount(r.Limits.CPUs))*1000
	e.Note += "; whole processors, and the filter refuses sched_setaffinity"
	return e
}

func (r *Run) enforcedMemory() executor.Enforcement {
	if !r.Host.Cgroups.Has(cgroup.Memory) {
		return r.byRlimit("Memory", unix.RLIMIT_DATA, "the data segment of each process; there is no bound on the sum")
	}
	e := executor.Enforcement{
		Limit: "Memory", By: r.Host.Mechanism(cgroup.Memory), Scope: executor.PerRun, Value: r.Group.Set().Memory,
		Note: r.Group.Set().MemoryNote,
	}
	if r.Mounted && e.Note == "" {
		e.Note = "files that the run writes count as memory"
	}
	return e
}

func (r *Run) enforcedDisk() executor.Enforcement {
	if r.Mounted {
		return executor.Enforcement{Limit: "Disk", By: executor.ByTmpfs, Scope: executor.PerRun, Value: r.Limits.Disk}
	}
	return executor.Enforcement{
		Limit: "Disk", By: executor.ByNone, Scope: executor.PerRun,
		Note: cmp.Or(r.Host.DiskNote, "the scratch directory is on the host's file system; only FileSize bounds each file"),
	}
}

func (r *Run) enforcedProcesses() executor.Enforcement {
	switch {
	case r.Host.Cgroups.Has(cgroup.Processes):
		return executor.Enforcement{
			Limit: "Processes", By: r.Host.Mechanism(cgroup.Processes), Scope: executor.PerRun,
			Value: int64(r.Group.Set().Processes - r.Host.around(cgroup.Processes)),
		}
	case r.Host.Tasks.Scope != "":
		e := r.byRlimit("Processes", unix.RLIMIT_NPROC, r.Host.Tasks.Note)
		e.Scope = r.Host.Tasks.Scope
		return e
	}
	return executor.Enforcement{
		Limit: "Processes", By: executor.ByNone, Scope: executor.PerUID, Note: "the uid is the caller's own; there is no bound for one run",
	}
}

// holds names the main mechanism behind a capability: for what a limit stands behind, that of the limit.
func (r *Run) holds(p Plan, c executor.Capability) executor.Mechanism {
	switch c {
	case executor.MemoryBounded:
		return r.enforcedMemory().By
	case executor.ProcessesBounded:
		return r.enforcedProcesses().By
	case executor.CPUBounded:
		return r.enforcedCPU().By
	case executor.DiskBounded:
		return r.enforcedDisk().By
	}
	return p.Holds(c)
}
