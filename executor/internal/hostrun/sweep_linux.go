// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor/internal/artifact"
	"github.com/evoseal/containment/internal/cgroup"
	"github.com/evoseal/containment/internal/lease"
	"github.com/evoseal/containment/internal/scratch"
	"github.com/evoseal/containment/internal/supervise"
)

// sweepTime bounds the clean-up of one killed host program's run.
const sweepTime = 15 * time.Second

// sweep removes what host programs left that were killed. A lease whose lock is held belongs to a living one and is left
// alone, however old it is.
func (h *Host) sweep(ctx context.Context) error {
	return h.leases.Sweep(ctx, func(ctx context.Context, rec lease.Record) error {
		ctx, cancel := context.WithTimeout(ctx, sweepTime)
		defer cancel()
		h.Logger.InfoContext(ctx, "sweeping a run whose host program is gone", slog.String("id", rec.ID), slog.String("label", rec.Label))
		var errs []error
		var slot *lease.Slot
		if rec.BootID == h.bootID {
			var err error
			slot, err = h.sweepProcesses(ctx, rec)
			errs = append(errs, err)
		}
		for _, dir := range rec.Scratch {
			errs = append(errs, h.sweepScratch(ctx, dir))
		}
		errs = append(errs, giveBack(slot, rec, errors.Join(errs...)))
		if rec.Artifacts != "" {
			errs = append(errs, artifact.RemoveTemps(rec.Artifacts, rec.ID))
		}
		if rec.BootID == h.bootID {
			errs = append(errs, cgroup.RemoveDirs(ctx, rec.Cgroups))
		}
		return errors.Join(errs...)
	})
}

// sweepProcesses kills what may still run, and returns the uid, if it has one that nobody had.
func (h *Host) sweepProcesses(ctx context.Context, rec lease.Record) (*lease.Slot, error) {
	if rec.UID == 0 || h.slots == nil {
		return nil, nil
	}
	slot, err := h.slots.TakeUID(rec.UID)
	if errors.Is(err, lease.ErrNoSlot) {
		// A living run has the uid. It was given only after the kernel said that no process has it: ours are dead.
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return slot, supervise.KillUser(ctx, int(rec.UID))
}

// giveBack releases the uid of a swept run. It is clean only now, when the guard is gone as well, and only if the run was
// the last one that had it: another one, with a lease elsewhere, may have been killed since.
func giveBack(slot *lease.Slot, rec lease.Record, failed error) error {
	switch {
	case slot == nil:
		return nil
	case failed != nil, slot.Dirty && slot.Left != "" && !slices.Contains(rec.Scratch, slot.Left):
		return slot.Abandon()
	}
	return slot.Release()
}

// sweepScratch removes a run's directory. A lease is our own file, and still no reason to remove anything that does not
// look like a run's directory.
func (h *Host) sweepScratch(ctx context.Context, dir string) error {
	if !filepath.IsAbs(dir) || !strings.HasPrefix(filepath.Base(dir), lease.Prefix) {
		return fmt.Errorf("lease names %q, which is no scratch directory", dir)
	}
	if err := waitUnlocked(ctx, dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	// EINVAL: nothing is mounted there, because the run did not come that far or the host was started anew. EPERM: the
	// caller may not unmount, and so did not mount.
	if err := unmount(dir); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
		return err
	}
	return scratch.Remove(ctx, dir)
}

// waitUnlocked waits for the guard of a run whose host program was killed: the run's processes are being killed just now, and the
// guard holds the lock of the directory until that is done.
func waitUnlocked(ctx context.Context, dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	for {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: its guard is still alive: %w", dir, context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
}
