// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// The sentinels of this package. Each error is an [*Error] that matches one of them, or errors.ErrUnsupported.
var (
	ErrNotExist  = errors.New("journal: there is none of this name")
	ErrExist     = errors.New("journal: it exists already")
	ErrLocked    = errors.New("journal: another writer has it open")
	ErrCorrupt   = errors.New("journal: damaged")                 // never repaired, never made anew
	ErrUntrusted = errors.New("journal: others could change it")  // owner, mode, link, not a regular file
	ErrTooLarge  = errors.New("journal: record too large")        // nothing was written
	ErrFull      = errors.New("journal: maximum size reached")    // nothing was written; Rotate makes room
	ErrInvalid   = errors.New("journal: invalid argument")        // nothing was written
	ErrMoved     = errors.New("journal: the head has moved on")   // Rotate with the snapshot of an older state
	ErrIO        = errors.New("journal: the system failed")       // an open journal goes on, unless it says ErrBroken
	ErrBroken    = errors.New("journal: a write or sync failed")  // sticky: all later calls give it as well
	ErrClosed    = errors.New("journal: closed, or never opened") // also the zero Journal
)

// Error says what could not be done with a journal, and why.
type Error struct {
	Op   string // "create", "open", "append", "sync", "rotate", "read", "close", or "use" of one that is not open
	Path string // the file or directory
	Line int    // from 1, where one line is to blame; else 0
	Rule string // what does not hold
	Fix  string // the way out
	Kind error  // the sentinel
	Err  error  // the system's error, if there is one
}

// Error names the file, the rule and the way out.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s %q", e.Kind, e.Op, e.Path)
	if e.Line > 0 {
		fmt.Fprintf(&b, ", line %d", e.Line)
	}
	fmt.Fprintf(&b, ": %s", e.Rule)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Fix != "" {
		fmt.Fprintf(&b, "; %s", e.Fix)
	}
	return b.String()
}

// Unwrap returns the sentinel and the system's error.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// wrap gives a failure of the system its place, unless it has one; nil stays nil.
func wrap(op, path, rule string, err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	e := &Error{Op: op, Path: path, Rule: rule, Kind: ErrIO, Err: err}
	switch {
	case errors.Is(err, ErrLocked):
		e.Kind, e.Err, e.Rule, e.Fix = ErrLocked, nil, "its lock is held", "end the other writer; the lock goes with its process"
	case errors.Is(err, errors.ErrUnsupported):
		e.Kind, e.Err = errors.ErrUnsupported, nil
	}
	return e
}

// writeAt writes all of p, or fails.
func writeAt(f File, p []byte, off int64) error {
	n, err := f.WriteAt(p, off)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return err
}

// joinClose adds the failure to close f, if any.
func joinClose(err error, f File) error { return errors.Join(err, f.Close()) }
