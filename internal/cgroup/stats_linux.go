// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"os"
	"slices"
)

// Stats reads every counter that there is. An error means that a counter that the host has could not be read, so that
// nothing can be said about the run. The group must not have been removed.
func (g *Group) Stats() (Stats, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := Stats{
		OOMKills: -1, ProcessLimitHits: -1, CPU: -1, User: -1, System: -1, PeakMemory: -1, PeakProcesses: -1, Processes: -1,
	}
	if slices.ContainsFunc(g.dirs, func(d dir) bool { return d.gone }) {
		return s, fmt.Errorf("cgroup: the group was removed: %w", os.ErrClosed)
	}
	var errs [6]error
	if d := g.dir(Memory); d != nil {
		s.OOMKills, errs[0] = g.counters.value(d, fileOOM, "oom_kill")
		s.PeakMemory, errs[1] = g.counters.optional(d, filePeakMemory)
	}
	if d := g.dir(Processes); d != nil {
		s.ProcessLimitHits, errs[2] = g.counters.value(d, fileTaskEvents, "max")
		s.PeakProcesses, errs[3] = g.counters.optional(d, filePeakTasks)
		s.Processes, errs[4] = g.counters.value(d, fileTasks, "")
	}
	if d := g.dir(CPUTime); d != nil {
		s.CPU, s.User, s.System, errs[5] = g.counters.cpu(d)
	}
	return s, errors.Join(errs[:]...)
}
