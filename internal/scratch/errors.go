// SPDX-License-Identifier: Apache-2.0

package scratch

import (
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/go-multierror"
)

// The sentinels of this package.
var (
	// ErrOptions: the options contradict themselves or are incomplete. Nothing was copied.
	ErrOptions = errors.New("scratch: invalid options")
	// ErrDestination: the destination is not an empty directory that belongs to the caller alone. Nothing was copied.
	ErrDestination = errors.New("scratch: unfit destination")
	// ErrSpecial: the tree holds a FIFO, a socket or a device.
	ErrSpecial = errors.New("special files are not copied; hide it by Spec.Hidden or remove it")
	// ErrOverlay: the overlay holds something else than directories and regular files. Nothing was copied.
	ErrOverlay = errors.New("an overlay holds directories and regular files only; remove it from the overlay")
	// ErrChanged: an entry was exchanged between two looks at it.
	ErrChanged = errors.New("changed while it was copied; leave the tree alone and try again")
	// ErrThroughLink: a rule names a path that is, or leads through, a symbolic link.
	ErrThroughLink = errors.New("is a symbolic link, so a rule for this path would miss what it names; " +
		"name the real path")
	// ErrLimit: the tree is larger than Options allow.
	ErrLimit = errors.New("the tree is larger than allowed; hide what the run does not need or raise the limit")
	// ErrPacked: the data is no packed tree, or one that is larger than allowed. A part of it may have been unpacked.
	ErrPacked = errors.New("scratch: damaged packed tree")
	// ErrMounted: something is mounted there; it is not removed.
	ErrMounted = errors.New("is a mount point; unmount it first")
	// ErrImmutable: the entry or its directory carries the immutable or the append-only flag.
	ErrImmutable = errors.New("is immutable or append-only; clear the flags (chattr -i -a) and remove it again")
)

// EntryError is about one entry of a tree.
type EntryError struct {
	Op   string // what was tried: "copy", "overlay" (then Path lies in the overlay), "unpack" (then Path is the last name), "remove"
	Path string // relative to the top of the tree; "." is the top itself
	Kind string // "FIFO", "socket", … for ErrSpecial and ErrOverlay, else empty
	Err  error
}

// longest part of a path that an error shows. A hostile path may be megabytes long.
const shownPath = 512

// Error names the path, quoted, because names may contain anything.
func (e *EntryError) Error() string {
	p := e.Path
	if len(p) > shownPath {
		p = p[:shownPath/2] + "…" + p[len(p)-shownPath/2:]
	}
	if e.Kind != "" {
		return fmt.Sprintf("scratch: %s %q: %s: %v", e.Op, p, e.Kind, e.Err)
	}
	return fmt.Sprintf("scratch: %s %q: %v", e.Op, p, e.Err)
}

// Unwrap returns the cause.
func (e *EntryError) Unwrap() error { return e.Err }

// enough is the number of errors after which looking for more helps nobody.
const enough = 20

// faults collects errors from several goroutines.
type faults struct {
	mu   sync.Mutex
	list []error // guarded by mu
}

// add records err, if there is room, and reports whether there is room for more.
func (f *faults) add(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) < enough {
		f.list = append(f.list, err)
	}
	return len(f.list) < enough
}

func (f *faults) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.list)
}

// truncate forgets all but the first n.
func (f *faults) truncate(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = f.list[:n]
}

// err returns nil, the only error, or all of them.
func (f *faults) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) == 1 {
		return f.list[0]
	}
	var all *multierror.Error
	return multierror.Append(all, f.list...).ErrorOrNil()
}
