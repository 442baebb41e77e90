// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
)

// Host has no controller: only Linux has control groups.
type Host struct{}

// Detect returns a host without controllers.
func Detect() *Host { return &Host{} }

// Has returns false.
func (*Host) Has(Controller) bool { return false }

// Any returns false.
func (*Host) Any() bool { return false }

// Version returns 0.
func (*Host) Version(Controller) int { return 0 }

// Reason says that the system has none.
func (*Host) Reason(Controller) string { return unsupported().Error() }

// Dirs returns nil.
func (*Host) Dirs(string) []string { return nil }

// Close does nothing.
func (*Host) Close() error { return nil }

// Create fails with an error that matches errors.ErrUnsupported.
func (*Host) Create(string, Limits) (*Group, error) { return nil, unsupported() }

// Group is never made.
type Group struct{}

// Set returns the zero value.
func (*Group) Set() Set { return Set{} }

// JoinFiles returns nil.
func (*Group) JoinFiles() []*os.File { return nil }

// Dirs returns nil.
func (*Group) Dirs() []string { return nil }

// CPUTime returns false.
func (*Group) CPUTime() (time.Duration, bool) { return 0, false }

// CPUTimes returns false.
func (*Group) CPUTimes() (total, user, system time.Duration, ok bool) { return 0, 0, 0, false }

// Stats fails with an error that matches errors.ErrUnsupported.
func (*Group) Stats() (Stats, error) { return Stats{}, unsupported() }

// Kill fails with an error that matches errors.ErrUnsupported.
func (*Group) Kill(context.Context) error { return unsupported() }

// Remove fails with an error that matches errors.ErrUnsupported.
func (*Group) Remove(context.Context) error { return unsupported() }

// RemoveDirs fails with an error that matches errors.ErrUnsupported if there is anything to remove.
func RemoveDirs(_ context.Context, dirs []string) error {
	if len(dirs) == 0 {
		return nil
	}
	return unsupported()
}

func unsupported() error {
	return fmt.Errorf("cgroup: no control groups on %s, only on Linux: %w", runtime.GOOS, errors.ErrUnsupported)
}
