// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/evoseal/containment/executor"
)

// spent returns what process 1 cannot know: whether the box's group has used more CPU time than the run may. Children
// that nobody waits for are only there. It returns nil where the group, or process 1, whose own share is taken out,
// cannot be seen.
func (r *run) spent() func() bool {
	c := r.box
	stat := "/proc/" + strconv.FormatUint(uint64(c.pid), 10) + "/stat"
	if !c.seesGroup || c.plan.GVisor || !r.ex.caps.Has(executor.CPUBounded) || !inGroup(c.pid, c.plan.Cgroup) {
		return nil
	}
	return func() bool {
		total, ok := r.ex.cgroups.cpu(c.plan.Cgroup)
		text, err := os.ReadFile(stat) // after the sum, so that the share is rather too large
		own, readable := cpuOf(text)
		return ok && err == nil && readable && total-c.before-max(own-c.hello.Own, 0) > r.limits.CPU
	}
}

// inGroup reports whether a process, by the number that the daemon has for it, is the one in that group here.
func inGroup(pid uint32, group string) bool {
	text, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(pid), 10) + "/cgroup")
	return err == nil && pid != 0 && strings.Contains(string(text), ":"+group+"\n")
}

// cpuOf reads the CPU time of a process from its stat file, rounded up: see proc_pid_stat(5), fields 14 and 15.
func cpuOf(stat []byte) (time.Duration, bool) {
	const tick = 10 * time.Millisecond // USER_HZ is 100 everywhere
	const user, system = 11, 12        // behind the name
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= system {
		return 0, false
	}
	sum := time.Duration(0)
	for _, f := range []int{user, system} {
		n, err := strconv.ParseInt(string(fields[f]), 10, 64)
		if err != nil {
			return 0, false
		}
		sum += time.Duration(n+1) * tick
	}
	return sum, true
}
