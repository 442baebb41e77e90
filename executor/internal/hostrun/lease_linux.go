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
	if r.Slot != nil {
		if err := r.Slot.Leave(dir); err != nil {
			return err
		}
	}
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

// takeUID returns a uid that no process has. One that a killed host program had is cleaned first. One that belongs to
// processes of somebody else is passed over.
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
			if err := h.clean(ctx, slot); err != nil {
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

// clean removes what the one who had the uid before has left, who may have had another state directory: the lease is then
// not here, and the slot alone says where the run was. The wait in there is for the server of that program, which would
// kill whoever has the uid then.
func (h *Host) clean(ctx context.Context, slot *lease.Slot) error {
	if slot.Left == "" {
		return errors.Join(h.sweep(ctx), supervise.KillUser(ctx, int(slot.UID)))
	}
	if err := supervise.KillUser(ctx, int(slot.UID)); err != nil {
		return err
	}
	h.SweepNow(ctx) // a lease of some other run that cannot be removed is no reason to do without this uid
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	return errors.Join(h.sweepScratch(ctx, slot.Left), supervise.KillUser(ctx, int(slot.UID)))
}
