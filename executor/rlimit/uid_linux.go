// SPDX-License-Identifier: Apache-2.0

package rlimit

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/evoseal/containment/internal/lease"
	"github.com/evoseal/containment/internal/supervise"
)

// takeLease reserves a uid and writes down what this run is about to make, before it makes it.
func (r *run) takeLease(ctx context.Context) (err error) {
	r.id = lease.NewID()
	rec := lease.Record{ID: r.id, Label: r.spec.Label, Cgroups: r.ex.cgroups.Dirs(r.groupName())}
	if r.ex.slots != nil {
		if r.slot, err = r.ex.takeUID(ctx); err != nil {
			return err
		}
		r.uid, r.gid, rec.UID = int(r.slot.UID), int(r.slot.UID), r.slot.UID
	}
	if len(r.spec.Artifacts) > 0 {
		if rec.Artifacts, err = filepath.Abs(r.spec.ArtifactDir); err != nil {
			return err
		}
	}
	dir := filepath.Join(r.ex.scratch, r.id)
	rec.Scratch = []string{dir}
	if r.ex.mounts {
		rec.Mounts = rec.Scratch
	}
	if r.lease, err = r.ex.leases.Acquire(rec); err != nil {
		return err
	}
	r.dir = dir
	return nil
}

func (r *run) groupName() string { return strings.TrimPrefix(r.id, lease.Prefix) }

// maxBusy is the number of reserved uids that may be in use by strangers before that is an error.
const maxBusy = 16

// takeUID returns a uid that no process has. One that a killed host program had is cleaned first, and only after its run is
// over for that program's server as well, which would kill whoever has the uid then. One that belongs to processes of
// somebody else is passed over.
func (e *Executor) takeUID(ctx context.Context) (_ *lease.Slot, err error) {
	var busy []*lease.Slot
	defer func() {
		for _, slot := range busy {
			err = errors.Join(err, slot.Release())
		}
	}()
	for len(busy) < maxBusy {
		slot, err := e.slots.Take()
		if err != nil {
			return nil, err
		}
		if slot.Dirty {
			err := e.sweep(ctx)
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
