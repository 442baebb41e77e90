// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/containerd/typeurl/v2"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/internal/hostrun"
	"github.com/evoseal/containment/internal/cgroup"
	"github.com/evoseal/containment/internal/lease"
)

const name = "containerd"

// Executor runs commands in tier 2. Its methods may be called from any goroutine. It must be closed.
type Executor struct {
	config Config
	host   *hostrun.Host // admission, and the count of runs; nothing else of it is open
	id     string        // also the name of its directory and lease
	caps   executor.Capability

	daemon      *Daemon // nil: not ours
	conn        *conn
	runtime     runtimeFacts
	options     typeurl.Any
	leases      *lease.Dir // of executors
	own         *lease.Lease
	boxLeases   *lease.Dir
	boxLeaseDir string
	stateID     string
	slots       *slots
	supervisor  *supervisor
	root        rootfs
	filter      []byte // of payloads
	reads       wanted
	readable    []string // links resolved
	cgroups     cgroupFiles

	mu    sync.Mutex
	roots map[string]string // skeletons by their mount points

	pool     *pool
	sweeping context.CancelFunc
	swept    chan struct{}
}

func (e *Executor) dir() string             { return filepath.Join(e.config.RuntimeDir, e.id) }
func (e *Executor) boxDir(id string) string { return filepath.Join(e.dir(), id) }

// cgroupParent is that of all boxes of a namespace: one place to look for what is left, and to bound the sum.
func (e *Executor) cgroupParent() string { return "/" + e.config.Namespace }

// keeper is the name of the empty group that keeps the parent as long as an executor lives.
func keeper(executor string) string { return "executor-" + executor }

func (e *Executor) cgroupPath(id string) string { return e.cgroupParent() + "/" + id }

// daemonPath says where the daemon sees a path of ours, as far as the caller or the kernel vouches for that. New has proven
// it for RuntimeDir, or no box could have started.
func (e *Executor) daemonPath(path string) (seen string, known bool) {
	var best PathMap
	for _, m := range e.config.DaemonPath {
		if below(path, m.From) && len(m.From) > len(best.From) {
			best = m
		}
	}
	if best.From == "" {
		return path, e.conn.sameFiles || below(path, e.config.RuntimeDir)
	}
	return filepath.Join(best.To, strings.TrimPrefix(path, best.From)), true
}

// see is daemonPath for what lies in RuntimeDir.
func (e *Executor) see(path string) string {
	seen, _ := e.daemonPath(path)
	return seen
}

// unsupported makes the error of a host, a daemon or a caller that cannot be served.
func (e *Executor) unsupported(reason, fix string) error {
	return &executor.UnsupportedError{Executor: name, Reason: reason, Fix: fix}
}

// refuse is unsupported for a cause that knows more.
func refuse(reason, fix string, err error) error {
	if d, ok := errors.AsType[*DaemonError](err); ok && d.Reason != "" {
		reason, fix = d.Op+": "+d.Reason, d.Fix
		if err == error(d) { // said once is enough
			err = &DaemonError{Op: d.Op, Err: d.Err}
		}
	}
	if u, ok := errors.AsType[*executor.UnsupportedError](err); ok {
		return u
	}
	return &executor.UnsupportedError{Executor: name, Reason: reason, Fix: fix, Err: err}
}

// Capabilities says what is enforced by this daemon and this runtime. It comes from a box that New has looked at.
func (e *Executor) Capabilities() executor.Capability { return e.caps }

// skeleton returns the root directory for a set of mount points.
func (e *Executor) skeleton(points []mountPoint) (string, error) {
	if e.root.dir != "" || e.root.parent != "" {
		return e.root.dir, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	k := key(points)
	if dir, ok := e.roots[k]; ok {
		return dir, nil
	}
	dir := filepath.Join(e.dir(), fmt.Sprintf("root-%d", len(e.roots)))
	if err := makeSkeleton(dir, points); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	e.roots[k] = dir
	return dir, nil
}

// destroyBox removes a box of which nothing but the name is known.
func (e *Executor) destroyBox(ctx context.Context, id string) error {
	ctx, cancel := apart(ctx)
	defer cancel()
	return errors.Join(e.conn.destroyBox(ctx, id), e.forceAway(ctx, id))
}

// forceAway removes what no daemon knows of any more.
func (e *Executor) forceAway(ctx context.Context, id string) error {
	return errors.Join(e.conn.killShims(id), e.removeGroups(ctx, id), e.conn.removeNotes(id))
}

// removeGroups removes what a shim that was killed leaves: nobody else knows of it.
func (e *Executor) removeGroups(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTime)
	defer cancel()
	return cgroup.RemoveDirs(ctx, e.cgroups.dirs(e.cgroupPath(id)))
}

// Close ends the boxes that wait, and removes what New made. Runs that are under way are not affected, and the last of them
// removes it; new ones fail with ErrClosed.
func (e *Executor) Close() error {
	if !e.host.Close() {
		return nil
	}
	return e.release()
}

// release is called once, when nobody uses the executor any more.
func (e *Executor) release() error {
	var errs []error
	if e.sweeping != nil {
		e.sweeping()
		<-e.swept
	}
	if e.pool != nil {
		errs = append(errs, e.pool.close())
	}
	if e.own != nil {
		e.cgroups.forget(e.cgroupParent(), keeper(e.id))
	}
	if e.boxLeases != nil {
		errs = append(errs, e.boxLeases.Close())
	}
	if e.conn != nil {
		errs = append(errs, e.conn.close())
	}
	var kept error
	if e.daemon != nil {
		kept = e.daemon.Close()
		errs = append(errs, kept)
	}
	switch {
	case e.own == nil:
	case kept != nil: // what is left of it is in the directory, and for a sweep
		errs = append(errs, e.own.Abandon())
	default:
		err := os.RemoveAll(e.dir())
		if err == nil {
			err = e.own.Release()
		}
		errs = append(errs, err)
	}
	if e.slots != nil {
		errs = append(errs, e.slots.close())
	}
	if e.leases != nil {
		errs = append(errs, e.leases.Close())
	}
	return errors.Join(errs...)
}

// Fingerprint names everything that a verified property of this executor depends on: root, runtime, daemon, supervisor, and
// what of Config changes boxes. Two executors with the same one make the same boxes.
func (e *Executor) Fingerprint() string {
	return fmt.Sprintf("%s capabilities=%v runtime=%q options=%q/%q daemon=%v root=%q reads=%q paths=%q supervisor=%s/%s filter=%x",
		name, e.caps, e.runtime.note(), e.config.Runtime.Binary, e.config.Runtime.ConfigPath, e.conn.version, e.root.identity,
		e.config.Root.Reads, e.config.DaemonPath, e.supervisor.Form, e.supervisor.Digest, sha256.Sum256(e.filter))
}
