// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"bytes"
	"math"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/cgroup"
	"github.com/evoseal/containment/internal/supervise"
)

const (
	// lockedMemory is the kernel's default of RLIMIT_MEMLOCK since 5.16. Locked pages count as memory like others.
	lockedMemory = 8 << 20
)

// Rlimits returns the limits of the payload.
func (r *Run) Rlimits() []supervise.Rlimit {
	if r.rlimits == nil {
		r.rlimits = r.Host.limits(r.Limits)
	}
	return r.rlimits
}

// limits: where a cgroup bounds the sum, the limit per process that would stop a payload first is left out: a failed malloc
// tells the host nothing, the cgroup's counter does.
func (h *Host) limits(l executor.Limits) []supervise.Rlimit {
	seconds := uint64((l.CPU + time.Second - 1) / time.Second)
	list := []supervise.Rlimit{
		limit(unix.RLIMIT_CORE, coreLimit()),
		{Resource: unix.RLIMIT_MSGQUEUE},
		{Resource: unix.RLIMIT_RTPRIO},
		{Resource: unix.RLIMIT_NICE},
		limit(unix.RLIMIT_NOFILE, uint64(l.OpenFiles)),
		limit(unix.RLIMIT_FSIZE, uint64(l.FileSize)),
		limit(unix.RLIMIT_MEMLOCK, lockedMemory),
		// The soft limit sends SIGXCPU, which tells; the hard one sends SIGKILL, which does not.
		{Resource: unix.RLIMIT_CPU, Soft: seconds, Hard: seconds + 1},
	}
	if !h.Cgroups.Has(cgroup.Memory) {
		list = append(list, limit(unix.RLIMIT_DATA, uint64(l.Memory)))
	}
	if h.Tasks.Scope != "" && !h.Cgroups.Has(cgroup.Processes) {
		list = append(list, limit(unix.RLIMIT_NPROC, uint64(l.Processes+h.Tasks.Extra)))
	}
	for i := range list {
		list[i] = capped(list[i])
	}
	return list
}

// coreLimit is 0, or 1 where the kernel pipes core dumps to a program: it does that whatever the limit is, as root of the
// host and with what the payload left in its memory, except at 1. A file of one byte is not written either.
func coreLimit() uint64 {
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil || bytes.HasPrefix(pattern, []byte("|")) {
		return 1
	}
	return 0
}

func limit(resource int, value uint64) supervise.Rlimit {
	return supervise.Rlimit{Resource: resource, Soft: value, Hard: value}
}

// capped lowers a limit to what the caller has itself: raising one needs a privilege.
func capped(l supervise.Rlimit) supervise.Rlimit {
	var own unix.Rlimit
	if unix.Getrlimit(l.Resource, &own) == nil {
		l.Hard = min(l.Hard, own.Max)
		l.Soft = min(l.Soft, l.Hard)
	}
	return l
}

// Affinity returns a mask of as many of the caller's processors as the limit allows, if no cgroup has a quota.
func (h *Host) Affinity(cpus float64) []uint64 {
	if h.Cgroups.Has(cgroup.CPUs) {
		return nil
	}
	var own unix.CPUSet
	if unix.SchedGetaffinity(0, &own) != nil {
		return nil
	}
	mask := make([]uint64, len(own))
	left := affinityCount(cpus)
	// From the last one down: interrupts and most other work gather on the first.
	for i := len(own)*64 - 1; i >= 0 && left > 0; i-- {
		if own.IsSet(i) {
			mask[i/64] |= 1 << (i % 64)
			left--
		}
	}
	return mask
}

func affinityCount(cpus float64) int { return min(max(int(math.Ceil(cpus)), 1), runtime.NumCPU()) }
