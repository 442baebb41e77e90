// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/scratch"
)

// cleanup removes everything in the reverse order, goes on over failures and names them all.
func (r *Run) cleanup() error {
	var remains []error
	note := func(err error) {
		if err != nil {
			remains = append(remains, err)
		}
	}
	if r.Stdio != nil {
		r.Stdio.Close()
	}
	for _, c := range r.Held {
		c.Close()
	}
	note(r.bury())
	if r.work != nil {
		r.work.Close()
	}
	if r.Lock != nil {
		r.Lock.Close()
	}
	if r.Mounted {
		note(unmount(r.Dir))
	}
	if r.Dir != "" {
		note(r.removeScratch())
	}
	note(r.removeCgroup())
	if len(remains) == 0 {
		note(r.release())
	} else if r.Slot != nil {
		note(r.Slot.Abandon()) // whoever takes the uid next cleans it first
	}
	if len(remains) == 0 {
		return nil
	}
	// The lease stays held until this process ends; then a sweep finds it.
	return &executor.CleanupError{Remains: remains}
}

func (r *Run) release() error {
	var errs []error
	if r.lease != nil {
		errs = append(errs, r.lease.Release())
	}
	if r.Slot != nil {
		errs = append(errs, r.Slot.Release())
	}
	return errors.Join(errs...)
}

// removeTime bounds the removal of what a run left in its directory, which may be a million files.
const removeTime = 5 * time.Minute

func (r *Run) removeScratch() error {
	ctx, cancel := context.WithTimeout(context.Background(), removeTime)
	defer cancel()
	return scratch.Remove(ctx, r.Dir)
}

func unmount(dir string) error {
	if err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "unmount", Path: dir, Err: err}
	}
	return nil
}
