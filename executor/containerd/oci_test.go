// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package containerd

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/evoseal/containment/executor"
)

var update = flag.Bool("update", false, "write the golden files anew")

func examplePlan(gvisor bool) plan {
	p := plan{
		Args: []string{"/.containment/supervisor", "marker"}, Root: "/run/containment/root",
		Supervisor: "/run/containment/supervisor",
		Binds:      []bind{{"/usr/lib/go", "/usr/lib/go"}, {"/opt/sdk", "/opt/sdk"}, {"/opt", "/opt"}},
		FirstID:    0x70000000, Cgroup: "/evoseal/example", GVisor: gvisor,
	}
	p.size(executor.DefaultLimits(), 10<<20, 100)
	return p
}

// The golden files are the whole specification. A change of what a box is must be seen in a review.
func TestSpecGolden(t *testing.T) {
	t.Parallel()
	for name, gvisor := range map[string]bool{"runc": false, "runsc": true} {
		got, err := json.MarshalIndent(examplePlan(gvisor).spec(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		file := "testdata/spec-" + name + ".json"
		if *update {
			if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
			t.Errorf("%s: (-want +got), go test -run Golden -update if that is meant:\n%s", file, diff)
		}
	}
}

// unset are the fields of a specification that a box leaves alone on purpose. A field that a later version adds is in
// neither list, and somebody must think about it.
var unset = map[string][]string{
	"Spec": {"Domainname", "Hooks", "Annotations", "Solaris", "Windows", "VM", "ZOS", "FreeBSD"},
	"Process": {"User", "Terminal", "ConsoleSize", "CommandLine", "ApparmorProfile", "Scheduler", "SelinuxLabel",
		"IOPriority", "ExecCPUAffinity"},
	"Linux": {
		"Sysctl", "NetDevices", "Devices", "MountLabel", "IntelRdt", "MemoryPolicy", "Personality", "TimeOffsets",
		"RootfsPropagation",
	},
	"LinuxResources": {"BlockIO", "HugepageLimits", "Network", "Rdma", "Unified"},
	"LinuxMemory": {"Reservation", "Kernel", "KernelTCP", "Swappiness", "DisableOOMKiller", "UseHierarchy",
		"CheckBeforeUpdate"},
	"LinuxCPU":     {"Shares", "Burst", "RealtimeRuntime", "RealtimePeriod", "Cpus", "Mems", "Idle"},
	"LinuxSeccomp": {"DefaultErrnoRet", "Flags", "ListenerPath", "ListenerMetadata"},
}

func TestSpecFields(t *testing.T) {
	t.Parallel()
	s := examplePlan(false).spec()
	for _, part := range []any{s, s.Process, s.Linux, s.Linux.Resources, s.Linux.Resources.Memory, s.Linux.Resources.CPU,
		s.Linux.Seccomp} {
		v := reflect.ValueOf(part).Elem()
		for i := range v.NumField() {
			field := v.Type().Field(i).Name
			if empty, meant := v.Field(i).IsZero(), slices.Contains(unset[v.Type().Name()], field); empty != meant {
				t.Errorf("%s.%s: empty is %t, and meant to be is %t", v.Type().Name(), field, empty, meant)
			}
		}
	}
}

func TestSpecCannotBeLooser(t *testing.T) {
	t.Parallel()
	s := examplePlan(false).spec()
	if !s.Root.Readonly || !s.Process.NoNewPrivileges || len(s.Process.Env) != 0 {
		t.Errorf("root %+v, process %+v", s.Root, s.Process)
	}
	want := []specs.LinuxNamespaceType{"user", "mount", "pid", "network", "ipc", "uts", "cgroup"}
	var got []specs.LinuxNamespaceType
	for _, ns := range s.Linux.Namespaces {
		if ns.Path != "" {
			t.Errorf("namespace %+v is somebody else's", ns)
		}
		got = append(got, ns.Type)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	if m := s.Linux.Resources.Memory; *m.Limit != *m.Swap {
		t.Errorf("memory %d and swap %d: the box could swap", *m.Limit, *m.Swap)
	}
	for _, m := range s.Mounts {
		if m.Type == "bind" && (!slices.Contains(m.Options, "ro") || !slices.Contains(m.Options, "rbind")) {
			t.Errorf("%s is a bind with %q", m.Destination, m.Options)
		}
		if m.Type == "bind" && !slices.Contains(m.Options, "rro") {
			t.Errorf("what is mounted below %s may be written to: %q", m.Destination, m.Options)
		}
		if m.Type != "proc" && !slices.Contains(m.Options, "nodev") || !slices.Contains(m.Options, "nosuid") {
			t.Errorf("%s has %q", m.Destination, m.Options)
		}
	}
}

// Whatever the limits are: what a run may write is no more than its disk, and leaves process 1 memory.
func TestSizes(t *testing.T) {
	t.Parallel()
	for _, l := range []executor.Limits{{}, {Memory: 16 << 20}, {Memory: 64 << 20, Disk: 64 << 10}, {Disk: 1 << 40},
		{Memory: math.MaxInt64, Disk: math.MaxInt64, Processes: math.MaxInt, OpenFiles: math.MaxInt},
		{Disk: 64<<10 + 1, Memory: 1 << 40}} {
		for _, bytes := range []int64{0, 1, 27 << 20, 2 << 30} {
			l := l.WithDefaults()
			var p plan
			p.size(l, bytes, bytes/5000)
			put := p.Memory - min(l.Memory, mostMemory)
			if p.Memory <= 0 || p.Tasks <= 0 || p.OpenFiles <= 0 {
				t.Errorf("%+v: %+v", l, p)
			}
			free := p.Work.Bytes + p.Temp.Bytes + p.Shm.Bytes - put
			if p.Disk > l.Disk || free > p.Disk || p.Disk > l.Memory {
				t.Errorf("%+v, %d: disk %d, free %d", l, bytes, p.Disk, free)
			}
			if need := bytes + bytes/5000*pageSize; put < need || put > need+need/shareOfSize+coarseBytes+16<<20 {
				t.Errorf("%+v: %d bytes more memory for %d", l, put, need)
			}
			for _, v := range []volume{p.Work, p.Temp, p.Shm} {
				if v.Bytes <= 0 || v.Inodes <= 0 { // zero is "unlimited" for tmpfs
					t.Errorf("%+v: a volume without a limit: %+v", l, p)
				}
			}
		}
	}
}
