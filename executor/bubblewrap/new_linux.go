// SPDX-License-Identifier: Apache-2.0

package bubblewrap

import (
	"context"
	"errors"
	"os"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/internal/hostrun"
	"github.com/evoseal/containment/internal/cgroup"
	"github.com/evoseal/containment/internal/seccomp"
	"github.com/evoseal/containment/internal/supervise"
)

const name = "bubblewrap"

// Executor runs commands in tier 1.5. Its methods may be called from any goroutine.
type Executor struct {
	config  Config
	host    *hostrun.Host
	caps    executor.Capability
	filter  []byte
	program string   // bwrap
	init    *os.File // process 1 of every sandbox
	view    view
	// readable are the places of the view's directories, links resolved.
	readable []string
	masks    []string // of maskedProc, what this kernel shows
}

// New prepares an executor: it looks for bubblewrap and at what the kernel enforces for this caller, removes what killed
// host programs left behind, and makes one trial run through the whole path.
func New(ctx context.Context, config Config) (*Executor, error) {
	return newExecutor(ctx, config, hostrun.Lacks{})
}

func newExecutor(ctx context.Context, config Config, l hostrun.Lacks) (*Executor, error) {
	host, err := hostrun.Open(hostrun.Config{
		Name: name, StateDir: config.StateDir, ScratchDir: config.ScratchDir, DiskScratch: config.DiskScratch,
		WorkspaceBytes: config.WorkspaceBytes, WorkspaceFiles: config.WorkspaceFiles,
		FirstUID: config.FirstUID, UIDs: config.UIDs, Logger: config.Logger, Lacks: l,
	})
	if err != nil {
		return nil, err
	}
	host.Tasks = hostrun.TaskLimit{
		Scope: executor.PerRun, Extra: 1, // our init
		Note: "counted in the run's own user namespace; the host learns of a refusal only if sampling sees the run at its limit",
	}
	host.DiskNote = "the copy of the workspace is on the host's file system, where only FileSize bounds each file"
	if !host.Root {
		host.DiskNote += "; HOME, TMPDIR and /dev/shm have this size each"
	}
	host.Around = 2 // bubblewrap and our init
	e := &Executor{config: config, host: host}
	if err := e.detect(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	host.SweepNow(ctx)
	e.caps = e.capabilities()
	if err := host.Trial(ctx, e.Run); err != nil {
		return nil, errors.Join(e.diagnose(err), e.Close())
	}
	return e, nil
}

// diagnose puts the meaning of bubblewrap's failure in place of "a trial run failed".
func (e *Executor) diagnose(err error) error {
	if start, ok := errors.AsType[*StartError](err); ok {
		return e.host.Unsupported(start.Reason, start.Fix, start)
	}
	return err
}

// checkUIDs refuses root where it is the only user, as in many containers.
func (e *Executor) checkUIDs() error {
	if !e.host.Root {
		return nil
	}
	for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		text, err := os.ReadFile(file)
		if err != nil {
			return e.host.Unsupported("the caller's user namespace cannot be read", "mount /proc", err)
		}
		if !mapsAll(string(text), e.host.FirstUID, e.host.UIDs) {
			return e.host.Unsupported("there is no unprivileged uid that the caller could take for a run, and started by uid 0 "+
				"bubblewrap is no boundary", "map the range Config.FirstUID, Config.UIDs into the outer user namespace, or run "+
				"the program as an unprivileged user", nil)
		}
	}
	return nil
}

// Close releases what New opened. Runs that are under way are not affected, and the last of them releases it; new ones
// fail with ErrClosed.
func (e *Executor) Close() error {
	if !e.host.Close() {
		return nil
	}
	return e.release()
}

// release is called once, when nobody uses the executor any more.
func (e *Executor) release() error {
	err := e.host.Release()
	if e.init != nil {
		err = errors.Join(err, e.init.Close())
	}
	return err
}

// Capabilities says what is enforced on this host for this caller.
func (e *Executor) Capabilities() executor.Capability { return e.caps }

// detect finds what every run needs.
func (e *Executor) detect(ctx context.Context) (err error) {
	if err := e.checkUIDs(); err != nil {
		return err
	}
	if e.program, err = findProgram(ctx, e.config.Path); err != nil {
		return e.diagnose(err)
	}
	if e.init, err = supervise.NewInit(); err != nil {
		return e.host.Unsupported("no init for the sandbox", "see the cause", err)
	}
	reads, err := findReads(e.config)
	if err != nil {
		return e.host.Unsupported("Config.Reads", "name only files and directories that exist and are not the run's own", err)
	}
	if e.view, err = openView(e.host.State, reads); err != nil {
		return e.host.Unsupported("no directory for what stands in for the host's files", "set Config.StateDir", err)
	}
	for _, r := range reads {
		e.readable = append(e.readable, hostrun.Resolve(r.path))
	}
	e.masks = shown(maskedProc)
	prog, err := seccomp.Assemble(filterOptions(e.host.Cgroups.Has(cgroup.CPUs)))
	if err != nil {
		return e.host.Unsupported("no seccomp filter for this architecture", "use amd64 or arm64", err)
	}
	e.filter = seccomp.Bytes(prog)
	return nil
}

// filterOptions: the network namespace holds nothing but a loopback interface, the IPC namespace nothing at all, and every
// file that a run can change is its own. But process 1 is ours and has the run's uid: calls that set limits or priorities of
// another process stay refused, or a run could set the init's CPU limit to nothing and end without a verdict. The filter is
// loaded by the init's child, directly before execve: it binds the payload and not what makes the sandbox.
func filterOptions(affinity bool) seccomp.Options {
	return seccomp.Options{
		Sockets: seccomp.SocketsAll, KernelIPC: true,
		PathMetadata: true, PathAttributes: true, FileMetadata: true, Affinity: affinity,
	}
}

// shown returns the files that everybody may read.
func shown(paths []string) (list []string) {
	for _, path := range paths {
		if fi, err := os.Stat(path); err == nil && fi.Mode().Perm()&0o004 != 0 {
			list = append(list, path)
		}
	}
	return list
}

// capabilities derives what is promised from what was found. A capability is here only if the conformance cases that
// attack it pass with exactly these means.
func (e *Executor) capabilities() executor.Capability {
	caps := executor.CleanEnv | executor.HostEnvHidden | executor.TreeKilled | executor.OutputBounded |
		executor.WorkspaceIsolated | executor.ProtectedReadOnly | executor.HostFilesHidden | executor.NetworkOff |
		executor.UnprivilegedUser | executor.NoNewPrivileges | executor.SyscallsFiltered | executor.CPUBounded
	if e.host.Cgroups.Has(cgroup.Memory) {
		caps |= executor.MemoryBounded
	}
	// RLIMIT_NPROC bounds as well, but the kernel counts no refusals: a contained fork bomb that ends with 0 would look
	// like a success.
	if e.host.Cgroups.Has(cgroup.Processes) {
		caps |= executor.ProcessesBounded
	}
	if e.host.Mounts {
		caps |= executor.DiskBounded
	}
	return caps
}
