// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxTasks is the most that the kernel can number (PID_MAX_LIMIT), and the most that it takes as a limit.
const maxTasks = 4 << 20

// period is over what the kernel sums processor time, in microseconds. It is also the kernel's default.
const period = 100_000

// limit sets the limit of one controller in its directory and records what the kernel made of it.
func (h *Host) limit(d *dir, c Controller, l Limits, set *Set) (err error) {
	switch {
	case c == Memory && l.Memory > 0:
		err = h.limitMemory(d, l.Memory, set)
	case c == Processes && l.Processes > 0:
		var got int64
		got, err = h.putNumber(d, "pids.max", int64(min(l.Processes, maxTasks)))
		set.Processes = int(got)
	case c == CPUs && l.CPUs > 0 && d.version == 2:
		err = h.limitCPUsV2(d, l.CPUs, set)
	case c == CPUs && l.CPUs > 0:
		err = h.limitCPUsV1(d, l.CPUs, set)
	}
	return err
}

// putNumber sets a limit and demands that the kernel took it; rounding down is all that it may do.
func (h *Host) putNumber(d *dir, file string, value int64) (int64, error) {
	text, err := h.ops.put(d.fd, file, strconv.FormatInt(value, 10))
	if err != nil {
		return 0, fail("write", d.path+"/"+file, err)
	}
	got, err := strconv.ParseInt(text, 10, 64)
	if err != nil || got > value || got <= 0 {
		return 0, fmt.Errorf("cgroup: %s/%s is %q after %d was written", d.path, file, text, value)
	}
	return got, nil
}

// limitMemory bounds memory and swap together. v1 counts the sum of both in a second file, which must not be lower than
// the first; v2 counts swap by itself. Kernels may lack the swap file.
func (h *Host) limitMemory(d *dir, bytes int64, set *Set) (err error) {
	file := "memory.max"
	if d.version == 1 {
		file = "memory.limit_in_bytes"
	}
	if set.Memory, err = h.putNumber(d, file, bytes); err != nil {
		return err
	}
	if d.version == 1 {
		_, err = h.putNumber(d, "memory.memsw.limit_in_bytes", bytes)
	} else {
		err = h.ops.order(d.fd, "memory.swap.max", "0")
	}
	if err == nil || !errors.Is(err, unix.ENOENT) {
		return err
	}
	if !h.swap {
		return nil
	}
	set.MemoryNote = "swap is not counted by this kernel and comes on top"
	if d.version == 1 && h.ops.order(d.fd, "memory.swappiness", "0") == nil {
		set.MemoryNote = "swap is not counted by this kernel; it is used only when nothing else is left"
	}
	return nil
}

func quota(cpus float64) int64 {
	return int64(min(max(math.Round(cpus*period), 1000), math.MaxInt32)) // the kernel takes no less than 1 ms
}

func (h *Host) limitCPUsV2(d *dir, cpus float64, set *Set) error {
	text, err := h.ops.put(d.fd, "cpu.max", fmt.Sprintf("%d %d", quota(cpus), period))
	if err != nil {
		return fail("write", d.path+"/cpu.max", err)
	}
	first, second, _ := strings.Cut(text, " ")
	got, err1 := strconv.ParseFloat(first, 64)
	per, err2 := strconv.ParseFloat(second, 64)
	if err1 != nil || err2 != nil || got <= 0 || per <= 0 {
		return fmt.Errorf("cgroup: %s/cpu.max is %q after %v processors were asked for", d.path, text, cpus)
	}
	set.CPUs = got / per
	return nil
}

// limitCPUsV1: the kernel refuses a quota above that of the group around it. That group then bounds the run already.
func (h *Host) limitCPUsV1(d *dir, cpus float64, set *Set) error {
	got, err := h.putNumber(d, "cpu.cfs_quota_us", quota(cpus))
	if errors.Is(err, unix.EINVAL) {
		outer, err1 := readFile(d.parent, "cpu.cfs_quota_us")
		outerPeriod, err2 := readFile(d.parent, "cpu.cfs_period_us")
		if err1 == nil && err2 == nil {
			q, err1 := number(outer)
			p, err2 := number(outerPeriod)
			if err1 == nil && err2 == nil && q > 0 && p > 0 && float64(q)/float64(p) <= cpus {
				set.CPUs = float64(q) / float64(p)
				return nil
			}
		}
	}
	set.CPUs = float64(got) / period
	return err
}
