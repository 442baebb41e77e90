// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/cgroup"
	"github.com/evoseal/containment/internal/lease"
	"github.com/evoseal/containment/internal/supervise"
)

// Config is what the executors' own configurations have in common; the fields mean what they mean there.
type Config struct {
	Name                           string // of the executor, in errors
	StateDir, ScratchDir           string
	DiskScratch                    bool
	WorkspaceBytes, WorkspaceFiles int64
	FirstUID, UIDs                 int
	Logger                         *slog.Logger
	Lacks                          Lacks
}

// Lacks names what a host does not have, for tests of what is then enforced in its place and what is not promised.
type Lacks struct{ Cgroups, Mounts bool }

const (
	defaultWorkspaceBytes = 2 << 30
	defaultWorkspaceFiles = 500_000
	// Debian reserves 65000–65533 and hands none of them out; systemd's dynamic users end at 65519 and are taken from the
	// bottom by hash, so a range that is checked for use before each run is a safe choice.
	defaultFirstUID = 65200
	defaultUIDs     = 256
)

func (c Config) withDefaults() Config {
	if c.WorkspaceBytes == 0 {
		c.WorkspaceBytes = defaultWorkspaceBytes
	}
	if c.WorkspaceFiles == 0 {
		c.WorkspaceFiles = defaultWorkspaceFiles
	}
	if c.FirstUID == 0 {
		c.FirstUID = defaultFirstUID
	}
	if c.UIDs == 0 {
		c.UIDs = defaultUIDs
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Host is what an executor holds between its runs.
type Host struct {
	Config
	Root    bool
	Mounts  bool // every run gets a sized file system of its own
	Cgroups *cgroup.Host
	State   string // the state directory
	Scratch string // where private copies live, absolute
	// Around is the number of processes of ours that are in a run's cgroups of version 2 as long as it lives: a process that
	// exists moves into one only after the kernel has waited for every processor (2 to 5 ms), so what stands around the
	// payload is made in it. In those of version 1, which are entered without delay, there is nothing but the payload.
	Around int
	// Joins makes payloads move themselves into cgroups, since they cannot be made there.
	Joins bool
	// Tasks is how RLIMIT_NPROC counts where no cgroup does.
	Tasks TaskLimit
	// DiskNote says what holds the disk where no run gets a file system of its own.
	DiskNote string

	server supervise.Server
	users  users
	leases *lease.Dir
	slots  *lease.Slots // nil for an ordinary caller
	bootID string
}

// TaskLimit says what RLIMIT_NPROC counts in a run. The zero value: more than the run, so it is not set.
type TaskLimit struct {
	Scope executor.Scope
	Extra int // tasks of ours that the kernel counts too
	Note  string
}

// Open looks at the caller and at what the kernel offers for bounding, and opens the directories. The error is an
// [*executor.UnsupportedError].
func Open(c Config) (*Host, error) {
	h := &Host{Config: c.withDefaults(), Root: os.Geteuid() == 0, Cgroups: new(cgroup.Host)}
	for _, step := range []func() error{h.checkCaller, h.openState, h.detect} {
		if err := step(); err != nil {
			return nil, errors.Join(err, h.Release())
		}
	}
	return h, nil
}

// Unsupported makes the error of a host or a caller that cannot be served.
func (h *Host) Unsupported(reason, fix string, err error) error {
	return &executor.UnsupportedError{Executor: h.Name, Reason: reason, Fix: fix, Err: err}
}

// checkCaller refuses callers whose ids are half changed: what the run would have is then not what it seems.
func (h *Host) checkCaller() error {
	if os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid() {
		return h.Unsupported("the caller's real and effective ids differ", "start the program without set-uid", nil)
	}
	if h.WorkspaceBytes < 0 || h.WorkspaceFiles < 0 || h.FirstUID < 0 || h.UIDs < 0 {
		return h.Unsupported("Config has a negative number", "zero takes the default", nil)
	}
	return nil
}

func (h *Host) detect() (err error) {
	if !h.Lacks.Cgroups {
		h.Cgroups = cgroup.Detect()
	}
	if h.bootID, err = lease.BootID(); err != nil {
		return h.Unsupported("/proc is not mounted", "mount it", err)
	}
	return nil
}

// Enter reports whether the executor is open, and counts a run if so; Leave must follow.
func (h *Host) Enter() bool { return h.users.enter() }

// Leave reports whether the executor was closed meanwhile and this was its last run: the caller must then release it.
func (h *Host) Leave() (last bool) { return h.users.leave() }

// Close reports whether this call closed the executor and no run is under way: the caller must then release it.
func (h *Host) Close() (idle bool) { return h.users.close() }

// closeTime bounds the wait for the end of the process that starts payloads. If runs are under way it ends after them.
const closeTime = time.Second

// Release is called once, when nobody uses the executor any more.
func (h *Host) Release() error {
	errs := []error{h.server.Close(closeTime)}
	if h.leases != nil {
		errs = append(errs, h.leases.Close())
	}
	if h.slots != nil {
		errs = append(errs, h.slots.Close())
	}
	errs = append(errs, h.Cgroups.Close())
	return errors.Join(errs...)
}

// around is the number of our processes that a run's controller counts.
func (h *Host) around(c cgroup.Controller) int {
	if h.Joins || h.Cgroups.Version(c) != 2 {
		return 0
	}
	return h.Around
}

// Mechanism names the version of the controller's interface.
func (h *Host) Mechanism(c cgroup.Controller) executor.Mechanism {
	if h.Cgroups.Version(c) == 2 {
		return executor.ByCgroupV2
	}
	return executor.ByCgroupV1
}

// SweepNow removes what killed host programs left behind. What cannot be removed must not stop new runs, which share
// nothing with it; nor may it go unnoticed.
func (h *Host) SweepNow(ctx context.Context) {
	if err := h.sweep(ctx); err != nil {
		h.Logger.WarnContext(ctx, "leftovers of an earlier process remain", slog.Any("error", err))
	}
}
