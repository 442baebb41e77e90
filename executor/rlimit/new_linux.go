// SPDX-License-Identifier: Apache-2.0

package rlimit

import (
	"context"
	"errors"
	"fmt"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/internal/hostrun"
	"github.com/evoseal/containment/internal/cgroup"
	"github.com/evoseal/containment/internal/seccomp"
)

const name = "rlimit"

// Executor runs commands in tier 1. Its methods may be called from any goroutine.
type Executor struct {
	config   Config
	host     *hostrun.Host
	caps     executor.Capability
	filter   []byte
	strict   []byte    // the filter of runs that see files of their own uid which they may not change
	landlock *landlock // nil: the kernel has none
}

// New prepares an executor: it looks at what the kernel enforces for this caller, removes what killed host programs left
// behind, and makes one trial run through the whole path.
func New(ctx context.Context, config Config) (*Executor, error) {
	return newExecutor(ctx, config, hostrun.Lacks{}, false)
}

func newExecutor(ctx context.Context, config Config, l hostrun.Lacks, noLandlock bool) (*Executor, error) {
	host, err := hostrun.Open(hostrun.Config{
		Name: name, StateDir: config.StateDir, ScratchDir: config.ScratchDir, DiskScratch: config.DiskScratch,
		WorkspaceBytes: config.WorkspaceBytes, WorkspaceFiles: config.WorkspaceFiles,
		FirstUID: config.FirstUID, UIDs: config.UIDs, Logger: config.Logger, Lacks: l,
	})
	if err != nil {
		return nil, err
	}
	e := &Executor{config: config, host: host}
	if host.Root {
		host.Tasks = hostrun.TaskLimit{
			Scope: executor.PerUID,
			Note:  "the uid is reserved for the run; the host learns of a refusal only if sampling sees the run at its limit",
		}
	}
	if err := e.detect(noLandlock); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	host.SweepNow(ctx)
	e.caps = e.capabilities()
	if err := host.Trial(ctx, e.Run); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
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
	if e.landlock != nil {
		err = errors.Join(err, e.landlock.close())
	}
	return err
}

// Capabilities says what is enforced on this host for this caller.
func (e *Executor) Capabilities() executor.Capability { return e.caps }

// detect finds out what this kernel enforces for this caller.
func (e *Executor) detect(noLandlock bool) (err error) {
	if e.config.Sockets > SocketsAll {
		return e.host.Unsupported(
			fmt.Sprintf("Config.Sockets %d is not defined", e.config.Sockets), "use SocketsNone, SocketsUnix or SocketsAll", nil)
	}
	if !noLandlock {
		if e.landlock, err = newLandlock(e.config); err != nil {
			return e.host.Unsupported("Config.Reads", "name only files and directories that exist", err)
		}
	}
	o := e.filterOptions()
	if e.filter, err = assemble(o); err == nil {
		o.FileMetadata = o.FileMetadata && (e.host.Root || e.config.PathMetadata)
		e.strict, err = assemble(o)
	}
	if err != nil {
		return e.host.Unsupported("no seccomp filter for this architecture", "use amd64 or arm64", err)
	}
	return nil
}

func (e *Executor) filterOptions() seccomp.Options {
	return seccomp.Options{
		Sockets:      map[Sockets]seccomp.Sockets{SocketsUnix: seccomp.SocketsUnix, SocketsAll: seccomp.SocketsAll}[e.config.Sockets],
		Affinity:     e.host.Cgroups.Has(cgroup.CPUs),
		OwnProcesses: e.host.Root,
		PathMetadata: e.host.Root || e.config.PathMetadata || e.landlock == nil,
		// Write permission for everybody is enough for these, so another uid is no protection.
		PathAttributes: e.config.PathMetadata,
		// What a run can open to write is its own; what it can only read is its own as well if it has the caller's uid.
		FileMetadata: true,
	}
}

func assemble(o seccomp.Options) ([]byte, error) {
	prog, err := seccomp.Assemble(o)
	return seccomp.Bytes(prog), err
}
