// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/internal/hostrun"
	"github.com/evoseal/containment/internal/lease"
	"github.com/evoseal/containment/internal/seccomp"
)

// newTime bounds New: every question to the daemon has a deadline of its own as well.
const newTime = 2 * time.Minute

// New prepares an executor: it looks at the daemon and the runtime, removes what killed host programs left behind, and has
// one box made, which says what it really is.
func New(ctx context.Context, config Config) (*Executor, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, newTime, errors.New("containerd: New took too long"))
	defer cancel()
	e := &Executor{
		config: config.withDefaults(), host: &hostrun.Host{Config: hostrun.Config{Name: name}}, id: lease.NewID(),
		roots: map[string]string{},
	}
	if text, err := os.ReadFile("/proc/self/mountinfo"); err == nil {
		e.cgroups = findCgroups(string(text))
	}
	for _, step := range []struct {
		reason, fix string
		do          func(context.Context) error
	}{
		{"Config", "correct it", e.checkConfig},
		{"no daemon", "see the cause", e.connect},
		{"no directories", "set Config.RuntimeDir and Config.StateDir to directories that only root can write to", e.openDirs},
		{"no directory for leases", "set Config.StateDir to a directory that only root can write to", e.openBoxLeases},
		{"no runtime", "set Config.Runtime", e.lookAtRuntime},
		{"no supervisor", "build cmd/containment-init without cgo and set Config.Supervisor", e.install},
		{"no root file system", "set Config.Root", e.openRoot},
		{"leftovers", "see the cause", e.firstSweep},
		{"a trial box", "see the cause", e.prove},
	} {
		if err := step.do(ctx); err != nil {
			return nil, errors.Join(refuse(step.reason, step.fix, err), e.release())
		}
	}
	e.startSweeping()
	e.pool = newPool(e)
	return e, nil
}

func (e *Executor) checkConfig(context.Context) error {
	c := e.config
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("Config."+format, args...)) }
	for field, path := range map[string]string{
		"RuntimeDir": c.RuntimeDir, "StateDir": c.StateDir, "Supervisor": c.Supervisor, "Root.Directory": c.Root.Directory,
		"Root.Archive": c.Root.Archive, "Runtime.Binary": c.Runtime.Binary, "Runtime.ConfigPath": c.Runtime.ConfigPath,
	} {
		if path != "" && !filepath.IsAbs(path) {
			bad("%s %q must be absolute", field, path)
		}
	}
	if set := countSet(c.Root.Image, c.Root.Archive, c.Root.Directory); set > 1 {
		bad("Root has more than one of Image, Archive and Directory")
	}
	if c.Root.Image != "" {
		if err := checkReference(c.Root.Image); err != nil {
			bad("Root.Image %w", err)
		}
	}
	if len(c.Root.Reads) > 0 && countSet(c.Root.Image, c.Root.Archive, c.Root.Directory) > 0 {
		bad("Root.Reads are for the skeleton; declare Spec.Mounts instead")
	}
	if c.WorkspaceBytes < 0 || c.WorkspaceFiles < 0 || c.SweepEvery < 0 || c.Warm.Size < 0 || c.Warm.MaxIdle < 0 || c.Warm.Fillers < 0 || c.IDs.Boxes < 0 {
		errs = append(errs, errors.New("Config has a negative number; zero takes the default"))
	}
	if c.Warm.Size > 0 && c.Warm.Size >= c.IDs.Boxes {
		bad("Warm.Size %d leaves no ids for runs: Config.IDs has %d ranges", c.Warm.Size, c.IDs.Boxes)
	}
	for i, m := range c.DaemonPath {
		if !filepath.IsAbs(m.From) || !filepath.IsAbs(m.To) || m.From != filepath.Clean(m.From) {
			bad("DaemonPath[%d] must map a clean absolute path to an absolute one", i)
		}
	}
	if !identifier(c.Namespace) {
		bad("Namespace %q must be at most 76 letters, digits, dots, dashes and underscores, and begin with a letter or digit", c.Namespace)
	}
	return errors.Join(errs...)
}

func countSet(texts ...string) (n int) {
	for _, t := range texts {
		if t != "" {
			n++
		}
	}
	return n
}

// connect finds a daemon, or starts one if that is wanted.
func (e *Executor) connect(ctx context.Context) (err error) {
	address := e.config.Address
	if address == "" {
		address = DefaultAddress
	}
	e.conn, err = dial(ctx, address, e.config.Namespace)
	if err == nil || e.config.Address != "" || !e.config.Managed {
		return err
	}
	if err := e.openDirs(ctx); err != nil {
		return err
	}
	if e.daemon, err = StartDaemon(ctx, DaemonConfig{Dir: e.managedDir(e.id), Logger: e.config.Logger}); err != nil {
		return err
	}
	e.conn, err = dial(ctx, e.daemon.Socket(), e.config.Namespace)
	return err
}

// managedDir is where the private daemon of an executor is.
func (e *Executor) managedDir(id string) string {
	return filepath.Join(e.config.RuntimeDir, id, "daemon")
}

// openDirs opens what lies on the host. The lease comes first: everything below the executor's directory is swept by it.
func (e *Executor) openDirs(ctx context.Context) error {
	if e.own != nil {
		return nil // a managed daemon needed them earlier
	}
	if os.Geteuid() != 0 {
		return &DaemonError{Op: "directories", Reason: "the caller is not root", Fix: "run as root: directories of boxes belong to " +
			"their ids, and whoever may use the daemon's socket is root anyway"}
	}
	for _, dir := range []string{filepath.Dir(e.config.RuntimeDir), e.config.RuntimeDir, e.config.StateDir} {
		if err := hostrun.MakeDir(dir); err != nil && (dir == e.config.RuntimeDir || dir == e.config.StateDir) {
			return err
		}
	}
	if err := reachable(e.config.RuntimeDir); err != nil {
		return err
	}
	var err error
	if e.stateID, err = stateID(e.config.StateDir); err != nil {
		return err
	}
	if e.leases, err = lease.Open(filepath.Join(e.config.StateDir, "executors"), 0o700); err != nil {
		return err
	}
	if e.own, err = e.leases.Acquire(lease.Record{ID: e.id, Label: e.config.Namespace, Scratch: []string{e.dir()}}); err != nil {
		return err
	}
	e.cgroups.keep(e.cgroupParent(), keeper(e.id))
	if err := hostrun.MakeDir(e.dir()); err != nil {
		return err
	}
	if err := hostrun.MakeDir(filepath.Dir(slotsDir)); err != nil {
		return err
	}
	e.slots, err = openSlots(slotsDir, e.config.IDs)
	return err
}

// openBoxLeases: the leases of boxes are kept by daemon, since only the daemon that has a box can say that it is gone. Those
// of a private one end with it.
func (e *Executor) openBoxLeases(context.Context) (err error) {
	e.boxLeaseDir = filepath.Join(e.config.StateDir, "boxes-"+filepath.Base(e.conn.uuid))
	if e.daemon != nil {
		e.boxLeaseDir = filepath.Join(e.dir(), "boxes")
	}
	e.boxLeases, err = lease.Open(e.boxLeaseDir, 0o700)
	return err
}

// slotsDir holds the locks of id ranges, for every executor of this machine.
const slotsDir = defaultRuntimeDir + "/ids"

// reachable demands that the ids of a box may search every directory on the way: the runtime looks for the root with them.
func reachable(dir string) error {
	for d := dir; d != "/"; d = filepath.Dir(d) {
		fi, err := os.Stat(d)
		if err != nil {
			return err
		}
		if fi.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("%s: the ids of boxes must be able to search %s (mode %#o); chmod o+x, or set Config.RuntimeDir", dir, d, fi.Mode().Perm())
		}
	}
	return nil
}

// stateID names a state directory as long as it exists: another one at the same place, after a restart of the machine, has
// another name, and so no right to what carries this one.
func stateID(dir string) (string, error) {
	path := filepath.Join(dir, "id")
	for range 2 {
		text, err := os.ReadFile(path)
		if id := strings.TrimSpace(string(text)); err == nil && strings.HasPrefix(id, lease.Prefix) {
			return id, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		// A link fails if another executor was quicker; then its name counts.
		fresh := path + "." + lease.NewID()
		if err := os.WriteFile(fresh, []byte(lease.NewID()+"\n"), 0o600); err != nil {
			return "", err
		}
		err = os.Link(fresh, path)
		if err = errors.Join(ignoreExist(err), os.Remove(fresh)); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s is not a state directory's name; remove it", path)
}

func ignoreExist(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func (e *Executor) lookAtRuntime(ctx context.Context) (err error) {
	if e.options, err = runtimeOptions(e.config.Runtime); err != nil {
		return err
	}
	if e.runtime, err = e.conn.runtimeFacts(ctx, e.config.Runtime, executor.DefaultPath); err != nil {
		return err
	}
	return e.runtime.accept(e.config.DangerAllowOldRuntime)
}

// install puts the supervisor where boxes find it, and assembles what it loads into payloads. In the box's namespaces every
// socket is the box's own; process 1 has another uid than the payload.
func (e *Executor) install(context.Context) (err error) {
	prog, err := seccomp.Assemble(seccomp.Options{
		Sockets: seccomp.SocketsAll, KernelIPC: true, PathMetadata: true, PathAttributes: true, FileMetadata: true, Affinity: true,
	})
	if err != nil {
		return err
	}
	e.filter = seccomp.Bytes(prog)
	e.supervisor, err = installSupervisor(filepath.Join(e.dir(), "supervisor"), e.config.Supervisor)
	return err
}

// openRoot prepares what every box has as its root.
func (e *Executor) openRoot(ctx context.Context) (err error) {
	r := e.config.Root
	switch {
	case r.Directory != "":
		e.root, err = e.openDirectory(r.Directory)
	case r.Image != "":
		e.root, err = e.conn.openImage(ctx, r.Image)
	case r.Archive != "":
		e.root, err = e.conn.openArchive(ctx, r.Archive)
	default:
		e.root.identity = "skeleton"
		if e.reads, err = e.lookAtReads(r.Reads); err == nil {
			for _, read := range r.Reads {
				err = errors.Join(err, socketsOf(read, e.conn.address))
				e.readable = append(e.readable, hostrun.Resolve(read))
			}
		}
	}
	return err
}
