// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/evoseal/containment/internal/lease"
	"github.com/evoseal/containment/internal/supervise"
)

// TakeLease reserves a uid and writes down what this run is about to make, before it makes it.
func (r *Run) TakeLease(ctx context.Context) (err error) {
	r.ID = lease.NewID()
	rec := lease.Record{ID: r.ID, Label: r.Spec.Label, Cgroups: r.Host.Cgroups.Dirs(r.groupName())}
	if r.Host.slots != nil {
		if r.Slot, err = r.Host.takeUID(ctx); err != nil {
			return err
		}
		r.UID, r.GID, rec.UID = int(r.Slot.UID), int(r.Slot.UID), r.Slot.UID
	}
	if len(r.Spec.Artifacts) > 0 {
		if rec.Artifacts, err = filepath.Abs(r.Spec.ArtifactDir); err != nil {
			return err
		}
	}
	dir := filepath.Join(r.Host.Scratch, r.ID)
	rec.Scratch = []string{dir}
	if r.Host.Mounts {
		rec.Mounts = rec.Scratch
	}
	if r.lease, err = r.Host.leases.Acquire(rec); err != nil {
		return err
	}
	r.Dir = dir
	return nil
}

func (r *Run) groupName() string { return strings.TrimPrefix(r.ID, lease.Prefix) }

// maxBusy is the number of reserved uids that may be in use by strangers before that is an error.
const maxBusy = 16

// takeUID returns a uid that no process has. One that a killed host program had is cleaned first, and only after its run is
// over for that program's server as well, which would kill whoever has the uid then. One that belongs to processes of
// somebody else is passed over.
func (h *Host) takeUID(ctx context.Context) (_ *lease.Slot, err error) {
	var busy []*lease.Slot
	defer func() {
		for _, slot := range busy {
			err = errors.Join(err, slot.Release())
		}
	}()
	for len(busy) < maxBusy {
		slot, err := h.slots.Take()
		if err != nil {
			return nil, err
		}
		if slot.Dirty {
			err := h.sweep(ctx)
			if err == nil {
				err = supervise.KillUser(ctx, int(slot.UID))
			}
			if err != nil {
				return nil, errors.Join(err, slot.Abandon())
			}
		}
		if taken, err := supervise.UserBusy(int(slot.UID)); err == nil && !taken {
			return slot, nil
		}
		busy = append(busy, slot)
	}
	return nil, fmt.Errorf("the first %d reserved uids are in use by other processes: set Config.FirstUID", maxBusy)
}
