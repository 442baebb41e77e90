// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"
	"golang.org/x/sys/unix"
)

// dyingTime is how long Sweep waits for the lock of a lease whose holder is dead: a child that the holder was starting
// when it was killed keeps the lock until it executes its program.
const dyingTime = 2 * time.Second

// Sweep takes every lease whose holder is dead and calls clean with what it names. The lease is removed only if clean
// returned nil; else it is there for the next sweep. While clean runs nobody else has that lease, so sweeps may run at
// the same time in any number of processes, and each lease is cleaned once. Everything that fails is collected, and the
// sweep goes on; it ends early only when ctx is done.
func (d *Dir) Sweep(ctx context.Context, clean func(context.Context, Record) error) error {
	names, err := d.dir.names()
	if err != nil {
		return fmt.Errorf("lease: list %q: %w", d.dir.path, err)
	}
	bootID, err := BootID()
	if err != nil {
		return err
	}
	var errs *multierror.Error
	failed := map[string]bool{}
	for deadline := time.Now().Add(dyingTime); len(names) > 0; {
		for _, name := range names {
			if ctx.Err() != nil {
				return multierror.Append(errs, fmt.Errorf("lease: sweep of %q: %w", d.dir.path, context.Cause(ctx))).ErrorOrNil()
			}
			if err := d.sweepOne(ctx, name, clean); err != nil {
				errs = multierror.Append(errs, err)
				failed[name] = true // and is not tried again
			}
		}
		names = slices.DeleteFunc(names, func(name string) bool { return failed[name] || !d.dying(name, bootID) })
		if len(names) == 0 || time.Now().After(deadline) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return errs.ErrorOrNil()
}

func (d *Dir) sweepOne(ctx context.Context, name string, clean func(context.Context, Record) error) error {
	id, unfinished := strings.CutSuffix(name, newSuffix)
	if !validID(id) {
		return nil // not ours to judge
	}
	fd, err := d.takeOver(name)
	if err != nil || fd < 0 {
		return err
	}
	defer func() { _ = unlock(fd) }() // reading only: nothing can be lost
	if !unfinished {
		rec, err := d.read(fd, id)
		if err != nil {
			return err
		}
		if err := clean(ctx, rec); err != nil {
			return fmt.Errorf("lease: clean up %s: %w", id, err)
		}
	}
	err = unix.Unlinkat(d.dir.fd, name, 0)
	if unfinished && errors.Is(err, unix.ENOENT) {
		return nil // its Acquire noticed us and removed it
	}
	if err != nil {
		return fmt.Errorf("lease: remove %q: %w", d.dir.join(name), err)
	}
	return nil
}

// takeOver returns a descriptor that holds the lock of the file, or -1 if there is nothing to take over: its holder
// lives, or it is gone.
func (d *Dir) takeOver(name string) (int, error) {
	// NONBLOCK for the case that somebody put a FIFO here.
	fd, err := openat(d.dir.fd, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		return -1, nil
	case err != nil:
		return -1, &CorruptError{d.dir.join(name), err}
	}
	free, err := lock(fd)
	if err == nil && free {
		free, err = d.isStill(fd, name)
	}
	if err != nil || !free {
		_ = unlock(fd) // an unlock of what was not locked has no effect
		if err != nil {
			err = &CorruptError{d.dir.join(name), err}
		}
		return -1, err
	}
	return fd, nil
}

// isStill reports whether name is still the file that fd is. Between open and lock its holder may have released it, or
// another sweep may have removed it: only who holds the lock of the named file may go on.
func (d *Dir) isStill(fd int, name string) (bool, error) {
	var have, named unix.Stat_t
	if err := unix.Fstat(fd, &have); err != nil {
		return false, err
	}
	err := unix.Fstatat(d.dir.fd, name, &named, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case err != nil:
		return false, err
	case have.Mode&unix.S_IFMT != unix.S_IFREG:
		return false, errors.New("is not a regular file")
	}
	return have.Dev == named.Dev && have.Ino == named.Ino, nil
}

// read returns the record of a lease whose lock is held.
func (d *Dir) read(fd int, id string) (Record, error) {
	again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return Record{}, &CorruptError{d.dir.join(id), err}
	}
	f := os.NewFile(uintptr(again), id)
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return Record{}, &CorruptError{d.dir.join(id), err}
	}
	rec, err := decode(id, data)
	if err != nil {
		return Record{}, &CorruptError{d.dir.join(id), err}
	}
	return rec, nil
}
