// SPDX-License-Identifier: Apache-2.0

package rlimit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

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

func (e *Executor) openState() error {
	dir := e.config.StateDir
	if dir == "" {
		dir = defaultStateDir(e.root)
	}
	fix := "set Config.StateDir to a directory of the caller's own"
	var err error
	// Searchable, since a run's own directories are below; not readable, so that runs do not find one another's.
	if err = makeDir(dir); err == nil {
		e.leases, err = lease.Open(filepath.Join(dir, "leases"), 0o700)
	}
	if err != nil {
		return unsupported("no state directory", fix, err)
	}
	if e.root {
		e.slots, err = lease.OpenSlots(lease.SlotConfig{
			Dir: filepath.Join(dir, "uids"), Base: uint32(e.config.FirstUID), Count: uint32(e.config.UIDs),
		})
		if err != nil {
			return unsupported("no uids for runs", "set Config.FirstUID and Config.UIDs to a range that nothing uses", err)
		}
	}
	e.mounts = e.root && !e.config.DiskScratch && !e.lacks.mounts && canMount(dir)
	if e.scratch = e.config.ScratchDir; e.scratch == "" {
		e.scratch = filepath.Join(e.defaultScratchDir(dir), "scratch")
	}
	if err := e.makeScratchDir(); err != nil {
		return unsupported("no scratch directory", "set Config.ScratchDir to a directory of the caller's own", err)
	}
	if e.scratch, err = filepath.Abs(e.scratch); err != nil {
		return unsupported("no scratch directory", fix, err)
	}
	return nil
}

// defaultStateDir is in memory where that is possible: leases are worth nothing after the next boot, and a file costs ten
// times as much on a disk.
func defaultStateDir(root bool) string {
	if root && isTmpfs("/run") {
		return "/run/containment"
	}
	own := "containment-" + strconv.Itoa(os.Geteuid())
	if isTmpfs("/dev/shm") {
		return filepath.Join("/dev/shm", own)
	}
	if root {
		return "/run/containment"
	}
	return filepath.Join(os.TempDir(), own)
}

// defaultScratchDir is the state directory if every run mounts a file system of its own below it. Copies that do not
// belong into memory go to the temporary directory.
func (e *Executor) defaultScratchDir(state string) string {
	if e.config.StateDir != "" || e.mounts {
		return state
	}
	return filepath.Join(os.TempDir(), "containment-"+strconv.Itoa(os.Geteuid()))
}

// makeScratchDir makes the scratch directory; of the default one, what is above is ours and checked as well.
func (e *Executor) makeScratchDir() error {
	if e.config.ScratchDir == "" {
		if err := makeDir(filepath.Dir(e.scratch)); err != nil {
			return err
		}
	}
	return makeDir(e.scratch)
}

func isTmpfs(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.TMPFS_MAGIC
}

// makeDir makes a directory that others may search, or checks that an existing one is the caller's and nobody else can
// write to it: in a shared directory somebody may have made it first.
func makeDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil {
		return err
	}
	if err := mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &fs.PathError{Op: "lstat", Path: dir, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%s is not a directory", dir)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to uid %d", dir, st.Uid)
	case st.Mode&0o022 != 0:
		return fmt.Errorf("%s is writable by others", dir)
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

// canMount tries what every run will do, in a directory that stays, so that a host program which is killed here leaves
// nothing that the next one does not find. Its lock keeps two of them apart.
func canMount(state string) bool {
	dir := filepath.Join(state, "probe")
	if makeDir(dir) != nil {
		return false
	}
	lock, err := os.Open(state)
	if err != nil {
		return false
	}
	defer lock.Close()
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX) != nil {
		return false
	}
	for unmount(dir) == nil { // left by one that was killed
	}
	if err := mountScratch(dir, 1<<20, 16); err != nil {
		return false
	}
	return unmount(dir) == nil
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
