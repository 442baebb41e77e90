// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd/internal/box"
	"github.com/evoseal/containment/executor/internal/hostrun"
	"github.com/evoseal/containment/internal/supervise"
)

// count reads what the kernel counted, while the box is there: later there is nothing to read.
func (r *run) count(ctx context.Context) error {
	if r.box.seesGroup {
		r.refused = r.ex.cgroups.refusedTasks(r.box.plan.Cgroup)
		r.peakTasks, _ = r.ex.cgroups.number(r.box.plan.Cgroup, "pids", "pids.peak") // since Linux 6.11
	}
	var err error
	r.figures, err = r.ex.conn.metrics(context.WithoutCancel(ctx), r.box.id)
	if err != nil && r.ex.caps.Has(executor.MemoryBounded) {
		return err
	}
	if r.ex.caps.Has(executor.MemoryBounded) && !r.box.plan.holdsMemory(r.figures.memoryLimit) {
		return fmt.Errorf("the box had %d bytes of memory instead of %d", r.figures.memoryLimit, r.box.plan.Memory)
	}
	if r.ex.caps.Has(executor.CPUBounded) {
		return r.cpuErr
	}
	return nil
}

// facts are what the verdict is made of.
func (r *run) facts(ending box.Ending) hostrun.Facts {
	f := hostrun.Facts{
		Ending: ending.Ending, Limits: r.limits,
		OOMKills: r.figures.oomKills, OOMBy: r.figures.by,
		TaskDenied: r.refused, TasksBy: r.figures.by,
		CPU: ending.CPU, CPUBy: executor.BySupervisor,
		Over: ending.Over, Total: [2]int64{ending.Stdout.Total, ending.Stderr.Total},
	}
	if cpu := r.payloadCPU(ending.Own); cpu > f.CPU {
		f.CPU, f.CPUBy = cpu, r.figures.by
	}
	// RLIMIT_NPROC comes first, and the kernel counts no refusals of it; a run with as many tasks as it may have is what
	// can be seen.
	if tasks, by := r.tasks(ending); f.TaskDenied == 0 && tasks >= r.limits.Processes {
		f.TaskDenied, f.TasksBy = int64(tasks), by
	}
	// On a machine without time to spare a payload may end by itself between its limit and the kill.
	if e := ending.Ending; e.Host == executor.CauseUnknown && e.Leader != nil && e.Ended.Sub(e.Started) > r.limits.Wall {
		f.Ending.Host = executor.CauseWallTimeout
	}
	for _, v := range ending.Volumes {
		f.DiskFull = max(f.DiskFull, v.Full)
	}
	return f
}

// tasks is the largest number of tasks that the payload is known to have had: what process 1 saw, or what the cgroup
// counted without those of process 1, of which there were never more than at the end.
func (r *run) tasks(ending box.Ending) (int, executor.Mechanism) {
	if counted := int(r.peakTasks) - ending.Threads; counted > ending.Tasks {
		return counted, r.figures.by
	}
	return ending.Tasks, executor.BySupervisor
}

// usage prefers the kernel's counters. Those of the cgroup have process 1 in them, so the payload's CPU time is what
// the kernel told process 1; in gVisor that is the sentry's own and wrong. What nobody waited for is missing there:
// then it is the cgroup's sum, in the proportion of the rest.
func (r *run) usage(ending box.Ending) executor.Usage {
	u := hostrun.Usage(ending.Ending)
	if r.figures.peakMemory > 0 {
		u.PeakMemory, u.PeakMemoryBy = r.figures.peakMemory, r.figures.by
	}
	if tasks, by := r.tasks(ending); tasks > 0 {
		u.PeakProcesses, u.PeakProcessesBy = tasks, by
	}
	if cpu, known := r.payloadCPU(ending.Own), u.User+u.System; cpu > known && r.figures.by != "" {
		share := 1.0
		if known > 0 {
			share = float64(u.User) / float64(known)
		}
		u.User = time.Duration(float64(cpu) * share)
		u.System, u.CPUBy = cpu-u.User, r.figures.by
	}
	if r.ex.runtime.gvisor && r.figures.by != "" {
		u.User, u.System, u.CPUBy = r.figures.user, r.figures.system, r.figures.by
	}
	return u
}

// rlimits are the payload's own. Where the cgroup bounds the sum, what would stop one process first is left out: a
// failed malloc tells the host nothing, the cgroup's counter does.
func (r *run) rlimits() []supervise.Rlimit {
	seconds := uint64((r.limits.CPU + time.Second - 1) / time.Second)
	same := func(resource int, value uint64) supervise.Rlimit {
		return supervise.Rlimit{Resource: resource, Soft: value, Hard: value}
	}
	list := []supervise.Rlimit{
		same(unix.RLIMIT_CORE, 0),
		same(unix.RLIMIT_RTPRIO, 0),
		same(unix.RLIMIT_NOFILE, uint64(r.limits.OpenFiles)),
		same(unix.RLIMIT_FSIZE, uint64(r.limits.FileSize)),
		same(unix.RLIMIT_MEMLOCK, lockedMemory),
		same(unix.RLIMIT_NPROC, uint64(r.limits.Processes)),
		// The soft limit sends SIGXCPU, which tells; the hard one sends SIGKILL, which does not.
		{Resource: unix.RLIMIT_CPU, Soft: seconds, Hard: seconds + 1},
	}
	if r.ex.runtime.gvisor { // its kernel lets nobody set the others
		return list
	}
	return append(list, same(unix.RLIMIT_MSGQUEUE, 0), same(unix.RLIMIT_NICE, 0))
}

// enforced says for every limit and every promised capability what really holds it in this run.
func (r *run) enforced() []executor.Enforcement {
	l, by := r.limits, r.figures.by
	run := func(limit string, by executor.Mechanism, value int64, note string) executor.Enforcement {
		return executor.Enforcement{Limit: limit, By: by, Scope: executor.PerRun, Value: value, Note: note}
	}
	process := func(limit string, value int64, note string) executor.Enforcement {
		return executor.Enforcement{Limit: limit, By: executor.ByRlimit, Scope: executor.PerProcess, Value: value, Note: note}
	}
	list := []executor.Enforcement{
		run("Wall", executor.BySupervisor, int64(l.Wall), ""),
		run("CPU", by, int64(l.CPU), "the verdict is by the box's counter without process 1; the kill by what process 1 samples and "+
			"waited for, and by that counter where the host sees it, else by Wall; RLIMIT_CPU for each process as well"),
		run("CPUs", by, int64(l.CPUs*1000), "thousandths of a processor"),
		run("Memory", by, l.Memory, fmt.Sprintf("files that the run writes count as memory; the box has %d bytes in all, for process 1 "+
			"and the copy of the workspace", r.figures.memoryLimit)),
		run("Disk", executor.ByTmpfs, r.plan.Disk, "one sixteenth each in /tmp and /dev/shm, the rest for workspace, HOME and TMPDIR"),
		process("FileSize", l.FileSize, "SIGXFSZ; a program that ignores it sees EFBIG"),
		run("Output", executor.BySupervisor, l.Output, "for each of two streams"),
		run("ArtifactBytes", executor.BySupervisor, l.ArtifactBytes, ""),
		run("Processes", executor.ByRlimit, int64(l.Processes), fmt.Sprintf("counted for the box's own ids, refusals are seen by "+
			"sampling; %d in the cgroup, with process 1", r.figures.tasksLimit)),
		process("OpenFiles", int64(l.OpenFiles), ""),
		run("ArtifactFiles", executor.BySupervisor, int64(l.ArtifactFiles), ""),
	}
	for one := range r.ex.caps.All() {
		list = append(list, run(one.String(), r.holds(one), 0, r.capabilityNote(one)))
	}
	return list
}

// capabilityNote says with FreshPerRun, what tier 2 is about, who makes the box: everything else hangs on that.
func (r *run) capabilityNote(c executor.Capability) string {
	if c != executor.FreshPerRun {
		return ""
	}
	text := fmt.Sprintf("%s; containerd %v; root %s; supervisor %s %s", r.ex.runtime.note(), r.ex.conn.version, r.ex.root.identity,
		r.ex.supervisor.Form, r.ex.supervisor.Digest)
	if r.warm {
		text += "; a box that was kept warm, used once"
	}
	return text
}

// holds names the main mechanism behind a capability.
func (r *run) holds(c executor.Capability) executor.Mechanism {
	switch c {
	case executor.HostEnvHidden, executor.TreeKilled, executor.WorkspaceIsolated, executor.HostFilesHidden,
		executor.NetworkOff, executor.MinimalRoot, executor.FreshPerRun, executor.OwnKernel:
		return executor.ByNamespace
	case executor.UnprivilegedUser, executor.ProtectedReadOnly:
		return executor.ByUID
	case executor.SyscallsFiltered:
		return executor.BySeccomp
	case executor.MemoryBounded, executor.CPUBounded:
		return r.figures.by
	case executor.ProcessesBounded:
		return executor.ByRlimit
	case executor.DiskBounded:
		return executor.ByTmpfs
	}
	return executor.BySupervisor
}
