// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/evoseal/containment/executor"
)

// groupLimits are what the kernel says that a box may have. Zero: not found, or no limit.
type groupLimits struct {
	memory, tasks int64
	quota, period int64 // microseconds
}

// limits reads those of a group. It is not seen where the group is not below what this process has of the hierarchies.
func (c cgroupFiles) limits(group string) (l groupLimits, seen bool) {
	path := c.file(group, "pids", "pids.max")
	if path == "" {
		return l, false
	}
	if _, err := os.Stat(path); err != nil {
		return l, false
	}
	l.tasks, _ = c.number(group, "pids", "pids.max")
	if _, v1 := c.at["memory"]; v1 {
		l.memory, _ = c.number(group, "memory", "memory.limit_in_bytes")
	} else {
		l.memory, _ = c.number(group, "memory", "memory.max")
	}
	if _, v1 := c.at["cpu"]; v1 {
		l.quota, _ = c.number(group, "cpu", "cpu.cfs_quota_us")
		l.period, _ = c.number(group, "cpu", "cpu.cfs_period_us")
	} else if text, err := os.ReadFile(c.file(group, "cpu", "cpu.max")); err == nil {
		quota, period, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
		l.quota, _ = strconv.ParseInt(quota, 10, 64) // "max" is no limit
		l.period, _ = strconv.ParseInt(period, 10, 64)
	}
	return l, true
}

// cpu is the CPU time of everything that was ever in a group, ended or not, waited for or not.
func (c cgroupFiles) cpu(group string) (time.Duration, bool) {
	if _, v1 := c.at["cpuacct"]; v1 {
		n, ok := c.number(group, "cpuacct", "cpuacct.usage")
		return time.Duration(n), ok
	}
	text, err := os.ReadFile(c.file(group, "cpu", "cpu.stat"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "usage_usec "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return time.Duration(n) * time.Microsecond, err == nil
		}
	}
	return 0, false
}

// holdsMemory, holdsTasks and holdsCPUs compare a box with its plan. The kernel rounds memory down to its pages.
func (p plan) holdsMemory(limit int64) bool {
	return limit > 0 && limit <= p.Memory && p.Memory-limit < int64(os.Getpagesize())
}

func (p plan) holdsTasks(limit int64) bool { return limit == int64(p.Tasks) }

func (p plan) holdsCPUs(l groupLimits) bool { return l.quota == p.quota() && l.period == cpuPeriod }

// readBack compares the box's group with its plan, where it can be seen, and notes what CPU time went by until here.
func (c *container) readBack(ctx context.Context) error {
	c.group, c.seesGroup = c.ex.cgroups.limits(c.plan.Cgroup)
	var errs []error
	bad := func(promised executor.Capability, ok bool) {
		if c.seesGroup && c.ex.caps.Has(promised) && !ok {
			errs = append(errs, fmt.Errorf("%v is not held: the box's group has %+v", promised, c.group))
		}
	}
	bad(executor.MemoryBounded, c.plan.holdsMemory(c.group.memory))
	bad(executor.ProcessesBounded, c.plan.GVisor || c.plan.holdsTasks(c.group.tasks))
	bad(executor.CPUBounded, c.plan.holdsCPUs(c.group))
	if len(errs) > 0 {
		return &DaemonError{Op: "look at the box", Reason: "the runtime did not set the limits that were ordered",
			Fix: "use another runtime", Err: errors.Join(errs...)}
	}
	var err error
	if c.before, err = c.cpuTime(ctx); err != nil && c.ex.caps.Has(executor.CPUBounded) {
		return err
	}
	return nil
}

// cpuTime is the CPU time of the box, process 1 included.
func (c *container) cpuTime(ctx context.Context) (time.Duration, error) {
	if c.seesGroup {
		if total, ok := c.ex.cgroups.cpu(c.plan.Cgroup); ok {
			return total, nil
		}
	}
	f, err := c.ex.conn.metrics(ctx, c.id)
	if err == nil && f.cpu == 0 {
		err = &DaemonError{Op: "metrics", Err: errors.New("no CPU time")}
	}
	return f.cpu, err
}

// countCPU is called when the payload is dead and process 1 has nothing to do.
func (r *run) countCPU(ctx context.Context) {
	total, err := r.box.cpuTime(context.WithoutCancel(ctx))
	r.cpu, r.cpuErr = total-r.box.before, err
}

// payloadCPU is what the group's counter leaves for the payload. The sum that process 1 sees lacks every child that
// nobody waited for and that ended between two looks.
func (r *run) payloadCPU(own time.Duration) time.Duration {
	if r.cpuErr != nil {
		return 0
	}
	return max(r.cpu-max(own-r.box.hello.Own, 0), 0)
}
