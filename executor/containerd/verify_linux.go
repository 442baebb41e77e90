// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd/internal/box"
)

// capabilityBits are those of supervisorCaps, by number (linux/capability.h).
const capabilityBits = 1<<0 | 1<<1 | 1<<3 | 1<<5 | 1<<6 | 1<<7 | 1<<8

const seccompFilterMode = 2

// check compares what process 1 found with what was ordered. A runtime that leaves something out in silence is caught here,
// in every box and before there is a payload.
func (p plan) check(h box.Hello) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	// runc sets HOME if nobody does.
	if h.PID != 1 || h.UID != 0 || h.GID != 0 || strings.Trim(h.Groups, "0 \t") != "" || h.Environment > 1 {
		bad("the supervisor is process %d, uid %d, gid %d, groups %q, with %d variables", h.PID, h.UID, h.GID, h.Groups, h.Environment)
	}
	if h.Permitted != capabilityBits || h.Effective != capabilityBits || h.Bounding != capabilityBits || h.Inheritable != 0 || h.Ambient != 0 {
		bad("the supervisor has capabilities %#x, %#x, %#x, %#x, %#x instead of %#x", h.Permitted, h.Effective, h.Bounding, h.Inheritable, h.Ambient, uint64(capabilityBits))
	}
	if !h.NoNewPrivs {
		bad("no_new_privs is not set")
	}
	if h.Seccomp != seccompFilterMode && !p.GVisor {
		bad("there is no seccomp filter (mode %d)", h.Seccomp)
	}
	if !slices.Equal(h.Interfaces, []string{"lo"}) {
		bad("the network interfaces are %q", h.Interfaces)
	}
	if h.Hostname != Hostname {
		bad("the hostname is %q", h.Hostname)
	}
	if ids := fmt.Sprintf("0 %d %d", p.FirstID, IDsPerBox); !p.GVisor && (h.UIDMap != ids || h.GIDMap != ids) {
		bad("the ids are mapped as %q and %q instead of %q", h.UIDMap, h.GIDMap, ids)
	}
	for _, ns := range h.Namespaces {
		if !p.GVisor && slices.Contains(ourNamespaces(), ns) {
			bad("the namespace %s is ours", ns)
		}
	}
	errs = append(errs, p.checkMounts(h.Mounts)...)
	if len(errs) == 0 {
		return nil
	}
	return &DaemonError{Op: "look at the box", Reason: "the runtime did not make what was ordered", Fix: "use another runtime",
		Err: errors.Join(errs...)}
}

// ourNamespaces are those of this process, which no box may be in.
func ourNamespaces() (list []string) {
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"} {
		if ns, err := os.Readlink("/proc/self/ns/" + kind); err == nil {
			list = append(list, ns)
		}
	}
	return list
}

// checkMounts demands the sizes, and that what is declared is read-only.
func (p plan) checkMounts(mounts []box.Mounted) (errs []error) {
	if len(mounts) >= box.MaxListed {
		errs = append(errs, fmt.Errorf("there are more mounts than can be looked at: %d", len(mounts)))
	}
	last := map[string]box.Mounted{}
	for _, m := range mounts {
		last[m.Target] = m
		if below(m.Target, targets(p.Binds)...) && !isReadOnly(m) {
			errs = append(errs, fmt.Errorf("%s, below a mount, is not read-only: %+v", m.Target, m))
		}
	}
	for target, v := range map[string]volume{box.Mount: p.Work, "/tmp": p.Temp, "/dev/shm": p.Shm} {
		m, ok := last[target]
		if !ok || m.Type != "tmpfs" || m.Size > v.Bytes+pageSize || m.Inodes > v.Inodes && !p.GVisor {
			errs = append(errs, fmt.Errorf("%s is %+v instead of a tmpfs of %d bytes and %d inodes", target, m, v.Bytes, v.Inodes))
		}
	}
	for _, target := range append([]string{"/", box.SupervisorDir}, targets(p.Binds)...) {
		if m, ok := last[target]; !ok || !isReadOnly(m) {
			errs = append(errs, fmt.Errorf("%s is not read-only: %+v", target, m))
		}
	}
	return errs
}

func isReadOnly(m box.Mounted) bool { return slices.Contains(strings.Split(m.Options, ","), "ro") }

func targets(binds []bind) (list []string) {
	for _, b := range binds {
		list = append(list, b.Target)
	}
	return list
}

// prove has one box made and used, and derives from it what is promised.
func (e *Executor) prove(ctx context.Context) error {
	empty := filepath.Join(e.dir(), "empty")
	if err := os.MkdirAll(empty, 0o755); err != nil {
		return err
	}
	spec := executor.Spec{Args: []string{"true"}, Workspace: empty, Label: "trial"}
	r := e.newRun(spec)
	result, err := r.do(ctx, time.Now())
	if err != nil {
		return err
	}
	if result.Cause != executor.CauseNotFound && !result.OK() {
		return fmt.Errorf("a trial run of \"true\" ended as %v: %s", result.Cause, result.Detail)
	}
	e.caps = e.capabilities(r)
	if e.runtime.gvisor && !e.caps.Has(executor.OwnKernel) {
		return &DaemonError{
			Op: "runtime", Reason: e.runtime.name + " is called a gVisor, and its boxes do not show a kernel of their own",
			Fix: "check Config.Runtime.ConfigPath",
		}
	}
	return nil
}

// capabilities derives what is promised from what the trial box showed. A capability is here only if the conformance cases
// that attack it pass with exactly these means.
func (e *Executor) capabilities(r *run) executor.Capability {
	caps := executor.CleanEnv | executor.HostEnvHidden | executor.TreeKilled | executor.OutputBounded |
		executor.WorkspaceIsolated | executor.ProtectedReadOnly | executor.HostFilesHidden | executor.NetworkOff |
		executor.UnprivilegedUser | executor.NoNewPrivileges | executor.SyscallsFiltered |
		executor.DiskBounded | executor.FreshPerRun
	if len(e.config.Root.Reads) == 0 {
		caps |= executor.MinimalRoot
	}
	if r.plan.holdsMemory(r.figures.memoryLimit) {
		caps |= executor.MemoryBounded
	}
	if r.box.seesGroup && r.plan.holdsCPUs(r.box.group) && r.cpuErr == nil {
		caps |= executor.CPUBounded
	}
	if e.runtime.gvisor || r.figures.tasksLimit == int64(r.plan.Tasks) {
		caps |= executor.ProcessesBounded
	}
	// The evidence for a kernel of its own is one that drew another boot id than ours; that its handler is gVisor is what
	// the runtime's name says.
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if own := strings.TrimSpace(r.boot); e.runtime.gvisor && err == nil && own != "" && own != strings.TrimSpace(string(boot)) {
		caps |= executor.OwnKernel
	}
	return caps
}
