// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package lease

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
)

func unsupported() error {
	return fmt.Errorf("lease: not on %s, only on Linux: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Dir cannot be had on this system.
type Dir struct{}

// Open fails with an error that matches [errors.ErrUnsupported].
func Open(string, fs.FileMode) (*Dir, error) { return nil, unsupported() }

// Acquire fails.
func (*Dir) Acquire(Record) (*Lease, error) { return nil, unsupported() }

// Sweep fails.
func (*Dir) Sweep(context.Context, func(context.Context, Record) error) error { return unsupported() }

// Close fails.
func (*Dir) Close() error { return unsupported() }

// Lease cannot be had on this system.
type Lease struct{ record Record }

// Record returns what the lease names.
func (l *Lease) Record() Record { return l.record }

// Abandon fails.
func (*Lease) Abandon() error { return unsupported() }

// Release fails.
func (*Lease) Release() error { return unsupported() }

// Slots cannot be had on this system.
type Slots struct{}

// OpenSlots fails with an error that matches [errors.ErrUnsupported].
func OpenSlots(SlotConfig) (*Slots, error) { return nil, unsupported() }

// Take fails.
func (*Slots) Take() (*Slot, error) { return nil, unsupported() }

// Close fails.
func (*Slots) Close() error { return unsupported() }

// Slot cannot be had on this system.
type Slot struct {
	UID   uint32
	Dirty bool
	Left  string
}

// Leave fails.
func (*Slot) Leave(string) error { return unsupported() }

// Release fails.
func (*Slot) Release() error { return unsupported() }

// Abandon fails.
func (*Slot) Abandon() error { return unsupported() }

// StartTime fails.
func StartTime(int) (uint64, error) { return 0, unsupported() }

// BootID fails.
func BootID() (string, error) { return "", unsupported() }
