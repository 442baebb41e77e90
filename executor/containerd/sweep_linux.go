// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/errdefs"

	"github.com/evoseal/containment/internal/lease"
)

// sweepTime bounds the clean-up of one killed host program's box or directory.
const sweepTime = 30 * time.Second

// firstSweep removes what killed host programs left. What cannot be removed must not stop new runs, which share nothing
// with it; nor may it go unnoticed.
func (e *Executor) firstSweep(ctx context.Context) error {
	if err := e.sweep(ctx); err != nil {
		e.config.Logger.WarnContext(ctx, "leftovers of an earlier process remain", slog.Any("error", err))
	}
	return nil
}

// startSweeping looks again from time to time: a neighbour may be killed while we live.
func (e *Executor) startSweeping() {
	ctx, cancel := context.WithCancel(context.Background())
	e.sweeping, e.swept = cancel, make(chan struct{})
	go func() {
		defer close(e.swept)
		tick := time.NewTicker(e.config.SweepEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = e.firstSweep(ctx) // says itself what went wrong
			}
		}
	}()
}

// sweep takes exactly the leases whose holder is dead, and then what no lease speaks of. A lease whose lock is held belongs
// to a living program and is left alone, however old it is.
func (e *Executor) sweep(ctx context.Context) error {
	errs := []error{
		e.boxLeases.Sweep(ctx, e.sweepBox),
		e.leases.Sweep(ctx, e.sweepExecutor),
		e.sweepUnleased(ctx),
	}
	return errors.Join(errs...)
}

// sweepBox removes one box of a dead program.
func (e *Executor) sweepBox(ctx context.Context, rec lease.Record) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	e.config.Logger.InfoContext(ctx, "sweeping a box whose host program is gone", slog.String("id", rec.ID), slog.String("label", rec.Label))
	if err := e.destroyBox(ctx, rec.ID); err != nil {
		return err
	}
	return errors.Join(removeDirs(rec), e.slots.giveBack(rec.UID, rec.ID))
}

// sweepExecutor removes the directory of a dead program's executor. If there is a private daemon in it, that is taken over:
// nobody else can end its boxes.
func (e *Executor) sweepExecutor(ctx context.Context, rec lease.Record) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	for _, dir := range rec.Scratch {
		daemonDir := filepath.Join(dir, "daemon")
		if !exists(daemonDir) {
			continue
		}
		if err := stopDaemonOf(daemonDir); err != nil {
			return err
		}
		d, err := StartDaemon(ctx, DaemonConfig{Dir: daemonDir, Logger: e.config.Logger})
		if err != nil {
			return err
		}
		if err := d.Close(); err != nil {
			return err
		}
		if err := e.forceAwayOf(ctx, rec.Label, daemonDir, filepath.Join(dir, "boxes")); err != nil {
			return err
		}
	}
	if identifier(rec.Label) {
		e.cgroups.forget("/"+rec.Label, keeper(rec.ID))
	}
	return removeDirs(rec)
}

// forceAwayOf removes what is left of boxes that were just being made when their daemon was killed: it knew nothing of them
// yet, but their leases were there already.
func (e *Executor) forceAwayOf(ctx context.Context, namespace, daemonDir, leases string) error {
	if !identifier(namespace) {
		return fmt.Errorf("lease names %q, which is no namespace", namespace)
	}
	was := &Executor{config: Config{Namespace: namespace}, cgroups: e.cgroups}
	was.conn = &conn{ns: namespace, address: daemonSocket(daemonDir), sameFiles: true}
	entries, err := os.ReadDir(leases)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), lease.Prefix) && !strings.Contains(entry.Name(), ".") {
			errs = append(errs, was.forceAway(ctx, entry.Name()))
		}
	}
	return errors.Join(errs...)
}

// removeDirs removes the directories that a lease names. A lease is our own file, and still no reason to remove anything
// that does not look like ours.
func removeDirs(rec lease.Record) error {
	for _, dir := range rec.Scratch {
		if !filepath.IsAbs(dir) || !strings.HasPrefix(filepath.Base(dir), lease.Prefix) {
			return fmt.Errorf("lease names %q, which is no directory of ours", dir)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// sweepUnleased looks at boxes of which no lease here speaks: of another state directory, or of one that was lost. Such a
// box may be somebody's who lives; only one that has ended, at a time after which it could not run any more, is removed.
func (e *Executor) sweepUnleased(ctx context.Context) error {
	list, err := e.conn.list(ctx, `labels."`+labelOwner+`"`)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range list {
		if e.leased(c.ID) || !pastDeadline(c, time.Now()) {
			continue
		}
		stopped, err := e.conn.stopped(ctx, c.ID)
		switch {
		case err != nil:
			errs = append(errs, err)
		case stopped:
			errs = append(errs, e.destroyBox(ctx, c.ID))
		default:
			e.config.Logger.WarnContext(ctx, "a box of another state directory runs beyond its deadline", slog.String("id", c.ID))
		}
	}
	return errors.Join(errs...)
}

func (e *Executor) leased(id string) bool { return exists(filepath.Join(e.boxLeaseDir, id)) }

// pastDeadline reports whether process 1 of a box must have ended. A box without a readable deadline never is.
func pastDeadline(c containers.Container, now time.Time) bool {
	at, err := strconv.ParseInt(c.Labels[labelDeadline], 10, 64)
	return err == nil && now.Unix() > at
}

// stopped reports whether a box has no process.
func (c *conn) stopped(ctx context.Context, id string) (bool, error) {
	ctx, cancel := c.within(ctx, askTime)
	defer cancel()
	r, err := c.tasks().Get(ctx, &tasks.GetRequest{ContainerID: id})
	if err = native(err); err != nil {
		if errdefs.IsNotFound(err) {
			return true, nil
		}
		return false, explain("look at "+id, err)
	}
	return r.GetProcess().GetStatus() == task.Status_STOPPED, nil
}

// destroyBox removes a box of which nothing but the name is known.
func (c *conn) destroyBox(ctx context.Context, id string) error {
	list, err := c.list(ctx, "id=="+id)
	if err != nil {
		return err
	}
	if err := c.destroy(ctx, id); err != nil {
		return err
	}
	snapshotter := defaultSnapshotter
	if len(list) == 1 && list[0].Snapshotter != "" {
		snapshotter = list[0].Snapshotter
	}
	return c.removeSnapshot(ctx, rootfs{snapshotter: snapshotter}, id)
}
