// SPDX-License-Identifier: Apache-2.0

package rlimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/cgroup"
	"github.com/evoseal/containment/internal/lease"
	"github.com/evoseal/containment/internal/seccomp"
	"github.com/evoseal/containment/internal/supervise"
)

const name = "rlimit"

// Executor runs commands in tier 1. Its methods may be called from any goroutine.
type Executor struct {
	config   Config
	root     bool
	caps     executor.Capability
	filter   []byte
	strict   []byte // the filter of runs that see files of their own uid which they may not change
	users    users
	landlock *landlock // nil: the kernel has none
	cgroups  *cgroup.Host
	mounts   bool // every run gets a sized file system
	leases   *lease.Dir
	slots    *lease.Slots // nil for an ordinary caller
	scratch  string
	bootID   string
	lacks    lacks
	joins    bool // payloads move themselves into cgroups, since they cannot be made there
	server   supervise.Server
}

// New prepares an executor: it looks at what the kernel enforces for this caller, removes what killed host programs left
// behind, and makes one trial run through the whole path.
func New(ctx context.Context, config Config) (*Executor, error) {
	return newExecutor(ctx, config, lacks{})
}

// lacks names what a host does not have, for tests of what is then enforced in its place and what is not promised.
type lacks struct{ cgroups, landlock, mounts bool }

func newExecutor(ctx context.Context, config Config, l lacks) (*Executor, error) {
	e := &Executor{config: config.withDefaults(), root: os.Geteuid() == 0, lacks: l}
	for _, step := range []func() error{e.checkCaller, e.openState, e.detect} {
		if err := step(); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	if err := e.sweep(ctx); err != nil {
		// What cannot be removed must not stop new runs, which share nothing with it; nor may it go unnoticed.
		e.config.Logger.WarnContext(ctx, "leftovers of an earlier process remain", slog.Any("error", err))
	}
	e.caps = e.capabilities()
	if err := e.trial(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Close releases what New opened. Runs that are under way are not affected, and the last of them releases it; new ones
// fail with ErrClosed.
func (e *Executor) Close() error {
	if !e.users.close() {
		return nil
	}
	return e.release()
}

// release is called once, when nobody uses the executor any more.
func (e *Executor) release() error {
	errs := []error{e.server.Close(closeTime)}
	if e.landlock != nil {
		errs = append(errs, e.landlock.close())
	}
	if e.leases != nil {
		errs = append(errs, e.leases.Close())
	}
	if e.slots != nil {
		errs = append(errs, e.slots.Close())
	}
	if e.cgroups != nil {
		errs = append(errs, e.cgroups.Close())
	}
	return errors.Join(errs...)
}

// closeTime bounds the wait for the end of the process that starts payloads. If runs are under way it ends after them.
const closeTime = time.Second

// Capabilities says what is enforced on this host for this caller.
func (e *Executor) Capabilities() executor.Capability { return e.caps }

func unsupported(reason, fix string, err error) error {
	return &executor.UnsupportedError{Executor: name, Reason: reason, Fix: fix, Err: err}
}

// checkCaller refuses callers whose ids are half changed: what the run would have is then not what it seems.
func (e *Executor) checkCaller() error {
	if os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid() {
		return unsupported("the caller's real and effective ids differ", "start the program without set-uid", nil)
	}
	if e.config.Sockets > SocketsAll {
		return unsupported(fmt.Sprintf("Config.Sockets %d is not defined", e.config.Sockets), "use SocketsNone, SocketsUnix or SocketsAll", nil)
	}
	if e.config.WorkspaceBytes < 0 || e.config.WorkspaceFiles < 0 || e.config.FirstUID < 0 || e.config.UIDs < 0 {
		return unsupported("Config has a negative number", "zero takes the default", nil)
	}
	return nil
}

// detect finds out what this kernel enforces for this caller.
func (e *Executor) detect() (err error) {
	if !e.lacks.landlock {
		if e.landlock, err = newLandlock(e.config); err != nil {
			return unsupported("Config.Reads", "name only files and directories that exist", err)
		}
	}
	e.cgroups = new(cgroup.Host)
	if !e.lacks.cgroups {
		e.cgroups = cgroup.Detect()
	}
	o := e.filterOptions()
	if e.filter, err = assemble(o); err == nil {
		o.FileMetadata = o.FileMetadata && (e.root || e.config.PathMetadata)
		e.strict, err = assemble(o)
	}
	if err != nil {
		return unsupported("no seccomp filter for this architecture", "use amd64 or arm64", err)
	}
	if e.bootID, err = lease.BootID(); err != nil {
		return unsupported("/proc is not mounted", "mount it", err)
	}
	return nil
}

func (e *Executor) filterOptions() seccomp.Options {
	return seccomp.Options{
		Sockets:      map[Sockets]seccomp.Sockets{SocketsUnix: seccomp.SocketsUnix, SocketsAll: seccomp.SocketsAll}[e.config.Sockets],
		Affinity:     e.cgroups.Has(cgroup.CPUs),
		OwnProcesses: e.root,
		PathMetadata: e.root || e.config.PathMetadata || e.landlock == nil,
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

// trial makes one run through everything that a run needs. The program need not exist: by the time the kernel says so,
// every step before it has succeeded and was checked.
func (e *Executor) trial(ctx context.Context) error {
	dir := filepath.Join(e.scratch, "empty") // stays, for the next one
	if err := makeDir(dir); err != nil {
		return unsupported("the scratch directory cannot be used", "set Config.ScratchDir", err)
	}
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	spec := executor.Spec{Args: []string{"true"}, Workspace: dir, Label: "trial"}
	result, err := e.Run(ctx, spec)
	if setup, ok := errors.AsType[*executor.SetupError](err); ok && setup.Step == supervise.StepCgroup.String() {
		e.joins = true // an outer sandbox refuses clone3; the slower way has the same effect
		result, err = e.Run(ctx, spec)
	}
	switch {
	case err != nil:
		return unsupported("a trial run failed", "see the step that failed", err)
	case result.OK(), result.Cause == executor.CauseNotFound:
		return nil
	}
	return unsupported("a trial run of \"true\" ended as "+result.Cause.String(), result.Detail, nil)
}

const trialTime = 10 * time.Second
