// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package containerd

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd/internal/box"
)

// The files of a group are read as either version of the kernel's interface writes them; "max" and what is absent are no
// limits.
func TestGroupFiles(t *testing.T) {
	t.Parallel()
	const used = 1_500_000 * time.Microsecond
	want := groupLimits{memory: 1 << 20, tasks: 9, quota: 50_000, period: cpuPeriod}
	for name, c := range map[string]struct {
		controllers string
		files       map[string]string
		want        groupLimits
		cpu         time.Duration
		seen        bool
	}{
		"v1": {"pids memory cpu cpuacct", map[string]string{
			"pids.max": "9\n", "memory.limit_in_bytes": "1048576\n", "cpu.cfs_quota_us": "50000\n",
			"cpu.cfs_period_us": "100000\n", "cpuacct.usage": "1500000000\n",
		}, want, used, true},
		"v2": {"", map[string]string{
			"pids.max": "9\n", "memory.max": "1048576\n", "cpu.max": "50000 100000\n",
			"cpu.stat": "usage_usec 1500000\nuser_usec 1\nsystem_usec 2\n",
		}, want, used, true},
		"unlimited": {"", map[string]string{
			"pids.max": "max\n", "memory.max": "max\n", "cpu.max": "max 100000\n",
		}, groupLimits{period: cpuPeriod}, 0, true},
		"only tasks": {"pids", map[string]string{"pids.max": "9\n"}, groupLimits{tasks: 9}, 0, true},
		"elsewhere":  {"", nil, groupLimits{}, 0, false},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		files := cgroupFiles{at: map[string]string{"": dir}}
		for _, one := range strings.Fields(c.controllers) {
			files.at[one] = dir
		}
		got, seen := files.limits("/")
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(groupLimits{})); diff != "" || seen != c.seen {
			t.Errorf("%s: seen is %t, (-want +got):\n%s", name, seen, diff)
		}
		if cpu, ok := files.cpu("/"); cpu != c.cpu || ok != (c.cpu > 0) {
			t.Errorf("%s: CPU time %v, %t", name, cpu, ok)
		}
	}
}

// A promise that a box's group does not keep is an error before there is a payload, and only if it was made.
func TestReadBack(t *testing.T) {
	t.Parallel()
	p := examplePlan(false)
	good := map[string]int64{
		"pids.max": int64(p.Tasks), "memory.limit_in_bytes": p.Memory, "cpu.cfs_quota_us": p.quota(),
		"cpu.cfs_period_us": cpuPeriod, "cpuacct.usage": 1,
	}
	const promised = executor.MemoryBounded | executor.ProcessesBounded | executor.CPUBounded
	for name, c := range map[string]struct {
		file  string
		value int64
		ok    bool
	}{
		"as ordered":       {"cpuacct.usage", 2, true},
		"whole pages":      {"memory.limit_in_bytes", p.Memory - 1, true},
		"a page less":      {"memory.limit_in_bytes", p.Memory - int64(os.Getpagesize()), false},
		"more memory":      {"memory.limit_in_bytes", p.Memory + 1, false},
		"unlimited memory": {"memory.limit_in_bytes", math.MaxInt64, false},
		"more tasks":       {"pids.max", int64(p.Tasks) + 1, false},
		"no quota":         {"cpu.cfs_quota_us", -1, false},
		"another period":   {"cpu.cfs_period_us", 1000, false},
	} {
		dir := t.TempDir()
		for file, value := range good {
			if file == c.file {
				value = c.value
			}
			if err := os.WriteFile(filepath.Join(dir, file), fmt.Append(nil, value), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		at := map[string]string{"pids": dir, "memory": dir, "cpu": dir, "cpuacct": dir}
		for caps, ok := range map[executor.Capability]bool{promised: c.ok, 0: true} {
			b := &container{ex: &Executor{cgroups: cgroupFiles{at: at}, caps: caps}, plan: p}
			b.plan.Cgroup = "/"
			if err := b.readBack(t.Context()); (err == nil) != ok {
				t.Errorf("%s, promised %v: %v", name, caps, err)
			}
		}
	}
}

// The share of process 1 is taken out once, from its hello on, and never more than there is.
func TestPayloadCPU(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ group, hello, end, want time.Duration }{
		{10, 0, 0, 10}, {10, 3, 5, 8}, {10, 3, 20, 0}, {10, 5, 3, 10}, {0, 0, 0, 0},
	} {
		r := &run{box: &container{hello: box.Hello{Own: c.hello}}, cpu: c.group}
		if got := r.payloadCPU(c.end); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
