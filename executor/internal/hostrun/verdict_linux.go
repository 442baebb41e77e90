// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"fmt"
	"syscall"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/supervise"
)

// Facts are what a verdict is made of. All of it was read by the host from the kernel.
type Facts struct {
	Ending Ending
	Limits executor.Limits
	Args0  string

	OOMKills   int64 // processes of the run that the kernel killed for its memory limit
	OOMBy      executor.Mechanism
	TaskDenied int64 // tasks that the kernel refused to create
	TasksBy    executor.Mechanism
	CPU        time.Duration // counted over the run; 0 if nothing counted it
	CPUBy      executor.Mechanism
	DiskFull   int64 // bytes or inodes at the limit; 0: it was not reached
	Over       [2]bool
	Total      [2]int64
}

// Judge fills in what the result says about the end of the run.
func Judge(r *executor.Result, f Facts) {
	r.ExitCode = -1
	hits(r, f)
	status(r, f.Ending)
	switch {
	case f.Ending.Host != executor.CauseUnknown:
		r.Cause = f.Ending.Host
	default:
		if cause := gravest(r.Hits); cause != executor.CauseUnknown {
			r.Cause = cause
		}
	}
	if r.Detail == "" {
		r.Detail = detail(r, f)
	}
}

// status says what the wait status alone says.
func status(r *executor.Result, e Ending) {
	if e.Failed != nil {
		r.Cause, r.Detail = notStarted(e.Failed)
		return
	}
	if e.Leader == nil {
		return
	}
	ws := syscall.WaitStatus(e.Leader.Status)
	switch {
	case ws.Exited():
		r.Cause, r.ExitCode = executor.CauseExited, ws.ExitStatus()
	case ws.Signaled():
		r.Cause, r.Signal = executor.CauseSignalled, ws.Signal()
	}
	switch r.Signal {
	case syscall.SIGXCPU:
		r.Cause = executor.CauseCPUTimeout
		r.Hits = append(r.Hits, executor.Hit{Limit: "CPU", Count: e.Leader.User + e.Leader.System, By: executor.ByRlimit})
	case syscall.SIGXFSZ:
		r.Cause = executor.CauseFileSize
		r.Hits = append(r.Hits, executor.Hit{Limit: "FileSize", Count: 1, By: executor.ByRlimit})
	case syscall.SIGSYS:
		r.Cause = executor.CausePolicyDenied
	}
}

// notStarted classifies a failed execve. Other failed steps are set-up errors, not causes; see SetupError.
func notStarted(e *supervise.Event) (executor.Cause, string) {
	errno := syscall.Errno(e.Errno)
	switch errno {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ELOOP:
		if e.Detail == 1 {
			return executor.CauseNotFound, "the program exists, its interpreter or loader does not"
		}
		return executor.CauseNotFound, "the program does not exist in the run's view"
	case syscall.EACCES, syscall.EPERM, syscall.ENOEXEC, syscall.EISDIR, syscall.ELIBBAD, syscall.EINVAL:
		return executor.CauseNotExecutable, fmt.Sprintf("the kernel does not execute the program: %v", errno)
	}
	return executor.CauseUnknown, ""
}

// SetupError returns the error of a run that failed before its payload could start, or nil if that is a verdict.
func SetupError(e *supervise.Event) error {
	if e == nil {
		return nil
	}
	if e.Step == supervise.StepExec {
		if cause, _ := notStarted(e); cause != executor.CauseUnknown {
			return nil
		}
	}
	return &executor.SetupError{Step: e.Step.String(), Err: syscall.Errno(e.Errno)}
}

func hits(r *executor.Result, f Facts) {
	hit := func(limit string, count int64, by executor.Mechanism) {
		r.Hits = append(r.Hits, executor.Hit{Limit: limit, Count: count, By: by})
	}
	if f.Ending.Host == executor.CauseWallTimeout {
		hit("Wall", int64(f.Ending.Ended.Sub(f.Ending.Started)), executor.BySupervisor)
	}
	if f.CPU > f.Limits.CPU {
		hit("CPU", int64(f.CPU), f.CPUBy)
	}
	if f.OOMKills > 0 {
		hit("Memory", f.OOMKills, f.OOMBy)
	}
	if f.DiskFull > 0 {
		hit("Disk", f.DiskFull, executor.ByTmpfs)
	}
	for i, over := range f.Over {
		if over {
			hit("Output", f.Total[i], executor.BySupervisor)
		}
	}
	if f.TaskDenied > 0 {
		hit("Processes", f.TaskDenied, f.TasksBy)
	}
}

// order is the precedence of limits that were met although the host did not end the run for them: the gravest first.
var order = []struct {
	limit string
	cause executor.Cause
}{
	{"Memory", executor.CauseOutOfMemory},
	{"Processes", executor.CauseProcessLimit},
	{"Disk", executor.CauseDiskFull},
	{"FileSize", executor.CauseFileSize},
	{"Output", executor.CauseOutputLimit},
	{"CPU", executor.CauseCPUTimeout},
}

func gravest(hits []executor.Hit) executor.Cause {
	for _, o := range order {
		for _, h := range hits {
			if h.Limit == o.limit {
				return o.cause
			}
		}
	}
	return executor.CauseUnknown
}

func detail(r *executor.Result, f Facts) string {
	l := f.Limits
	switch r.Cause {
	case executor.CauseExited:
		return fmt.Sprintf("exit code %d", r.ExitCode)
	case executor.CauseSignalled:
		return fmt.Sprintf("signal %d (%v)", int(r.Signal), r.Signal)
	case executor.CauseWallTimeout:
		return fmt.Sprintf("still running after %v", l.Wall)
	case executor.CauseCPUTimeout:
		return fmt.Sprintf("more than %v of CPU time", l.CPU)
	case executor.CauseOutOfMemory:
		return fmt.Sprintf("%d processes killed at %d bytes", f.OOMKills, l.Memory)
	case executor.CauseProcessLimit:
		return fmt.Sprintf("no more than %d tasks", l.Processes)
	case executor.CauseOutputLimit:
		return fmt.Sprintf("more than %d bytes on one stream", l.Output)
	case executor.CauseDiskFull:
		return fmt.Sprintf("%d bytes or %d files used up", l.Disk, executor.DiskInodes)
	case executor.CauseFileSize:
		return fmt.Sprintf("a file of more than %d bytes", l.FileSize)
	case executor.CausePolicyDenied:
		return "a foreign system call ABI was used"
	case executor.CauseCancelled:
		return "the caller cancelled the run"
	}
	return ""
}
