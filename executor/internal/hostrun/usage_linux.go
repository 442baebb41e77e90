// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"time"

	"github.com/evoseal/containment/executor"
)

// Usage returns what the guard knows: rusage covers processes that were waited for, and the largest resident set of
// one process is no sum. An executor with better counters puts them in their place.
func Usage(e Ending) executor.Usage {
	u := executor.Usage{
		CPUBy: executor.ByNone, PeakMemoryBy: executor.ByNone, PeakProcessesBy: executor.ByNone,
	}
	if !e.Started.IsZero() && !e.Ended.IsZero() {
		u.Wall = e.Ended.Sub(e.Started)
	}
	if t := e.Tree; t != nil && e.Failed == nil {
		u.User, u.System, u.CPUBy = time.Duration(t.User), time.Duration(t.System), executor.ByRusage
		u.PeakMemory, u.PeakMemoryBy = t.MaxRSS, executor.ByRusage
	}
	if e.Tasks > 0 {
		u.PeakProcesses, u.PeakProcessesBy = e.Tasks, executor.BySupervisor
	}
	return u
}

// Timing says how long the phases took; the caller adds the teardown. A payload that did not start has no run phase.
func Timing(begin time.Time, e Ending) executor.Timing {
	if e.Started.IsZero() || e.Ended.IsZero() {
		return executor.Timing{Setup: time.Since(begin)}
	}
	return executor.Timing{Setup: e.Started.Sub(begin), Run: e.Ended.Sub(e.Started)}
}
