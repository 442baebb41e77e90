// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Errors of a scan, all inside an [Error].
type (
	// LimitError says which field of [Limits] is exceeded, and where it was noticed.
	LimitError struct {
		Path, Limit  string
		Value, Bound int64
	}
	// UnstableError names what kept changing while it was read.
	UnstableError struct{ Paths []string }
	// SpecialError names FIFOs, sockets and devices.
	SpecialError struct{ Found []Foreign }
	// SetIDError names regular files with set-id bits.
	SetIDError struct{ Paths []string }
)

func (e *LimitError) Error() string {
	return fmt.Sprintf("%q: %d is more than %s, %d", e.Path, e.Value, e.Limit, e.Bound)
}

func (e *UnstableError) Error() string { return fmt.Sprintf("%q kept changing", e.Paths) }

func (e *SpecialError) Error() string {
	var b strings.Builder
	for i, f := range e.Found {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q is a %s", f.Path, f.Detail)
	}
	return b.String()
}

func (e *SetIDError) Error() string { return fmt.Sprintf("%q have set-id bits", e.Paths) }

// Error is everything that was wrong with a tree.
type Error struct {
	Failures []error
	More     int // failures that were counted only
}

func (e *Error) Error() string {
	var b strings.Builder
	for i, err := range e.Failures {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(err.Error())
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "; and %d more", e.More)
	}
	return b.String()
}

// Unwrap returns the failures.
func (e *Error) Unwrap() []error { return e.Failures }

// maxFailures bounds what a hostile tree can make us remember.
const maxFailures = 256

// faults collects failures from all workers.
type faults struct {
	mu       sync.Mutex
	other    []error
	unstable []string
	special  []Foreign
	setID    []string
	more     int
}

// add appends to one of the lists.
func add[T any](f *faults, list *[]T, v T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(*list) < maxFailures {
		*list = append(*list, v)
	} else {
		f.more++
	}
}

// err joins what was collected, in an order that does not depend on the workers.
func (f *faults) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := &Error{Failures: slices.Clone(f.other), More: f.more}
	slices.SortStableFunc(e.Failures, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if len(f.unstable) > 0 {
		slices.Sort(f.unstable)
		e.Failures = append(e.Failures, &UnstableError{slices.Compact(f.unstable)})
	}
	if len(f.special) > 0 {
		slices.SortFunc(f.special, byPath)
		e.Failures = append(e.Failures, &SpecialError{f.special})
	}
	if len(f.setID) > 0 {
		slices.Sort(f.setID)
		e.Failures = append(e.Failures, &SetIDError{f.setID})
	}
	if len(e.Failures) == 0 {
		return nil
	}
	return e
}

func byPath(a, b Foreign) int { return strings.Compare(a.Path, b.Path) }
