// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd/internal/box"
)

// plan is everything in which boxes differ. Two boxes with the same plan, but for Slot and Cgroup, can stand in for each
// other.
type plan struct {
	Args       []string // of process 1
	Root       string   // path of the root for the daemon; empty: the snapshot's
	Supervisor string   // the directory that is bound to box.SupervisorDir
	Binds      []bind
	FirstID    uint32 // of the slot
	Cgroup     string

	Memory    int64 // bytes in all, of which the payload has Limits.Memory
	CPUs      float64
	Tasks     int   // process 1 included
	Disk      int64 // what the run may add in all volumes together
	Put       int64 // what is put there for it
	OpenFiles int
	Work      volume // what the run may write, and what is put there for it
	Temp, Shm volume

	GVisor   bool
	AppArmor string
	OOMScore int // of process 1, below which the payload cannot go
}

// volume is the size of a tmpfs.
type volume struct{ Bytes, Inodes int64 }

// bind is a file or directory of the daemon's host, shown read-only.
type bind struct{ Source, Target string }

const (
	cpuPeriod    = 100_000 // microseconds
	stageFiles   = 16      // descriptors of process 1 beside what the payload may have
	lockedMemory = 64 << 10
	devBytes     = 64 << 10
	runBytes     = 64 << 10
)

// supervisorCaps are what process 1 needs to make the payload somebody else: to take the ids, to give the copy to them, to
// kill, and to empty the payload's bounding set.
var supervisorCaps = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID",
}

// maskedPaths show the host or its devices in /proc and say nothing about the box.
var maskedPaths = []string{
	"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug",
	"/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/proc/key-users", "/proc/kallsyms", "/proc/kpagecount",
	"/proc/kpageflags", "/proc/kpagecgroup", "/proc/config.gz", "/sys/firmware", "/sys/devices/virtual/powercap",
}

// readonlyPaths would let root of the box change something for everybody.
var readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}

// spec writes every field from an empty specification: a default that changes in the client must not change a box.
func (p plan) spec() *specs.Spec {
	s := &specs.Spec{
		Version:    specs.Version,
		Hostname:   Hostname,
		Root:       &specs.Root{Path: cmp.Or(p.Root, "rootfs"), Readonly: true},
		Process:    p.process(),
		Mounts:     p.mounts(),
		Linux:      p.linux(),
		Domainname: "",
	}
	if p.GVisor {
		// Without it the shim waits for ever (google/gvisor#4544).
		s.Annotations = map[string]string{"io.kubernetes.cri.container-type": "sandbox"}
	}
	return s
}

func (p plan) process() *specs.Process {
	return &specs.Process{
		Args: p.Args,
		Env:  []string{}, // anybody inside may read that of process 1
		Cwd:  "/",
		User: specs.User{},
		Capabilities: &specs.LinuxCapabilities{
			Bounding: supervisorCaps, Permitted: supervisorCaps, Effective: supervisorCaps,
			Inheritable: []string{}, Ambient: []string{},
		},
		NoNewPrivileges: true,
		ApparmorProfile: p.AppArmor,
		OOMScoreAdj:     &p.OOMScore,
		Rlimits: []specs.POSIXRlimit{
			rlimit("RLIMIT_NOFILE", uint64(p.OpenFiles+stageFiles)),
			rlimit("RLIMIT_CORE", 0),
			rlimit("RLIMIT_MEMLOCK", lockedMemory),
			rlimit("RLIMIT_MSGQUEUE", 0),
		},
	}
}

func rlimit(kind string, value uint64) specs.POSIXRlimit {
	return specs.POSIXRlimit{Type: kind, Soft: value, Hard: value}
}

// mounts in their order: a bind may lie below another one, never below a tmpfs that comes later.
func (p plan) mounts() []specs.Mount {
	list := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		tmpfs("/dev", volume{devBytes, 128}, "0755", "noexec", "strictatime"),
		tmpfs("/dev/shm", p.Shm, "1777", "noexec"),
		tmpfs("/run", volume{runBytes, 128}, "0755", "noexec", "ro"),
		tmpfs("/tmp", p.Temp, "1777"),
		tmpfs(box.Mount, p.Work, "0755"),
		p.readOnly(bind{p.Supervisor, box.SupervisorDir}),
	}
	binds := slices.Clone(p.Binds)
	slices.SortStableFunc(binds, func(a, b bind) int {
		return cmp.Compare(strings.Count(path.Clean(a.Target), "/"), strings.Count(path.Clean(b.Target), "/"))
	})
	for _, b := range binds {
		list = append(list, p.readOnly(b))
	}
	return list
}

func tmpfs(target string, v volume, mode string, more ...string) specs.Mount {
	options := append([]string{
		"nosuid", "nodev", "mode=" + mode, fmt.Sprintf("size=%d", v.Bytes), fmt.Sprintf("nr_inodes=%d", v.Inodes),
	}, more...)
	return specs.Mount{Destination: target, Type: "tmpfs", Source: "tmpfs", Options: options}
}

// readOnly shows a bind. Options without "r" hold for the mount itself and not for what is mounted below its source on the
// host, which everybody may be able to write to. gVisor knows only those, and serves everything below as one mount.
func (p plan) readOnly(b bind) specs.Mount {
	options := []string{"rbind", "ro", "nosuid", "nodev", "rprivate"}
	if !p.GVisor {
		options = append(options, "rro", "rnosuid", "rnodev")
	}
	return specs.Mount{Destination: b.Target, Type: "bind", Source: b.Source, Options: options}
}

func (p plan) linux() *specs.Linux {
	ids := []specs.LinuxIDMapping{{ContainerID: 0, HostID: p.FirstID, Size: IDsPerBox}}
	return &specs.Linux{
		UIDMappings: ids,
		GIDMappings: ids,
		Namespaces: []specs.LinuxNamespace{
			{Type: specs.UserNamespace}, {Type: specs.MountNamespace}, {Type: specs.PIDNamespace}, {Type: specs.NetworkNamespace},
			{Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.CgroupNamespace},
		},
		CgroupsPath:   p.Cgroup,
		Resources:     p.resources(),
		Seccomp:       seccompFilter(),
		MaskedPaths:   maskedPaths,
		ReadonlyPaths: readonlyPaths,
	}
}

func (p plan) resources() *specs.LinuxResources {
	quota, period := p.quota(), uint64(cpuPeriod)
	tasks := int64(p.Tasks)
	return &specs.LinuxResources{
		Devices: deviceRules(),
		// Equal totals: no swap. The OOM killer stays on and takes one process, not the group: process 1 must report.
		Memory: &specs.LinuxMemory{Limit: &p.Memory, Swap: &p.Memory},
		Pids:   &specs.LinuxPids{Limit: &tasks},
		CPU:    &specs.LinuxCPU{Quota: &quota, Period: &period},
	}
}

// quota is in microseconds for each period; the kernel's least is 1 ms.
func (p plan) quota() int64 { return max(int64(p.CPUs*cpuPeriod), 1000) }

// deviceRules deny everything but what the runtime makes in every /dev: null, zero, full, random, urandom, tty.
func deviceRules() []specs.LinuxDeviceCgroup {
	rules := []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}
	for _, d := range [][2]int64{{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}} {
		rules = append(rules, specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &d[0], Minor: &d[1], Access: "rw"})
	}
	return rules
}

// mountPoints are the directories that a root file system must have.
func mountPoints() []string {
	return []string{"/proc", "/dev", "/run", "/tmp", box.Mount, box.SupervisorDir}
}

// What the sizes are made of.
const (
	smallShare  = 16      // /tmp and /dev/shm get one part in so many of the disk each
	pageSize    = 4096    // of a tmpfs
	spareTasks  = 16      // threads of process 1, and of the stage
	gvisorTasks = 256     // the sentry's own threads are counted,
	perTask     = 8       // and what it has on the host for each task inside: RLIMIT_NPROC is the bound
	coarseBytes = 4 << 20 // sizes are rounded, so that a warm box fits a workspace that grew a little
	coarseFiles = 1 << 10 //
	shareOfSize = 8       // by at most one part in so many
	notOnDisk   = 8 << 20 // of the memory: full disks must not leave process 1 without any
)

// More than a machine can have. A sum that overflows would be negative, and that means "unlimited" in some places.
const (
	mostMemory = 1 << 50
	mostTasks  = 1 << 22 // the kernel's PID_MAX_LIMIT
	mostFiles  = 1 << 30
)

// size fills in what follows from the limits and from what is put into the box before the run. What the run writes is in
// memory: a disk that could take all of it would end in an OOM kill where a full disk is meant.
func (p *plan) size(l executor.Limits, bytes, files int64) {
	memory := min(l.Memory, mostMemory)
	put := roundUp(bytes+files*pageSize, coarseBytes)
	p.Put = put
	disk := min(l.Disk, memory-notOnDisk)
	small := volume{max(disk/smallShare/pageSize, 1) * pageSize, executor.DiskInodes / smallShare}
	p.Temp, p.Shm = small, small
	p.Work = volume{disk - 2*small.Bytes + put, roundUp(files, coarseFiles) + executor.DiskInodes - 2*small.Inodes}
	p.Disk = disk
	p.Memory = memory + put + box.Overhead
	p.CPUs, p.OpenFiles, p.Tasks = l.CPUs, min(l.OpenFiles, mostFiles), min(l.Processes, mostTasks)+spareTasks
	if p.GVisor {
		p.Tasks = min(gvisorTasks+perTask*p.Tasks, mostTasks)
	}
}

// roundUp returns the next multiple of a step that grows with n.
func roundUp(n, step int64) int64 {
	for step*shareOfSize*2 <= n {
		step *= 2
	}
	return (n + step - 1) / step * step
}
