// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"fmt"
)

// ErrNoSlot says that every reserved user id is in use.
var ErrNoSlot = errors.New("lease: every reserved user id is in use; raise the number of ids or run less at a time")

// DirError says that a state directory cannot be trusted or used.
type DirError struct {
	Path string
	Rule string // what does not hold
	Fix  string
	Err  error // the system's error, if there is one
}

// Error names the directory, the rule and the way out.
func (e *DirError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("lease: directory %q: %s: %v; %s", e.Path, e.Rule, e.Err, e.Fix)
	}
	return fmt.Sprintf("lease: directory %q: %s; %s", e.Path, e.Rule, e.Fix)
}

// Unwrap returns the system's error.
func (e *DirError) Unwrap() error { return e.Err }

// CorruptError says that a lease cannot be read. It was kept, because nobody knows what it named.
type CorruptError struct {
	Path string
	Err  error
}

// Error names the file and the way out.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("lease: %q: %v; look for leftovers of that name and then remove the file", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// RangeError says why a range of user ids cannot be reserved.
type RangeError struct {
	Base, Count uint32
	UID         uint32 // the id that is in the way; 0 if it is the range as a whole
	Rule        string
}

// Error names the range, the id, the rule and the way out.
func (e *RangeError) Error() string {
	id := ""
	if e.UID != 0 {
		id = fmt.Sprintf("id %d ", e.UID)
	}
	return fmt.Sprintf("lease: user ids from %d, %d of them: %s%s; choose a range that nothing else on this host uses",
		e.Base, e.Count, id, e.Rule)
}
