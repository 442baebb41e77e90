// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"errors"
	"fmt"
	"strings"
)

// What a call can fail with. Each is matched by [errors.Is]; the types below carry the detail.
var (
	// ErrNotFound: there is no such checkpoint. Nothing else is ever restored in its place.
	ErrNotFound = errors.New("no such checkpoint")
	// ErrCorrupt: something in the store is not what was written; see [CorruptError].
	ErrCorrupt = errors.New("the store is damaged")
	// ErrFormat: the store was made by a newer version, or with a key that was not given.
	ErrFormat = errors.New("the store cannot be read by this version or without its key")
	// ErrUnstable: files kept changing while they were read; see [UnstableError].
	ErrUnstable = errors.New("the tree changed while it was read")
	// ErrTooLarge: a bound of [Limits] is exceeded; see [LimitError].
	ErrTooLarge = errors.New("larger than the limit")
	// ErrNoSpace: there is not enough room for the call; nothing was changed.
	ErrNoSpace = errors.New("not enough free space")
	// ErrTarget: this directory may not be read or restored into; see [TargetError].
	ErrTarget = errors.New("not a tree of this store")
	// ErrBlocked: something that the store does not know stands where a checkpoint needs the name; nothing was changed.
	ErrBlocked = errors.New("the way is blocked by something that is not in the store")
	// ErrIncomplete: the restore ended, but something that is not in the store keeps a directory alive.
	ErrIncomplete = errors.New("the tree is restored but for what the store does not know")
	// ErrPending: a restore was interrupted after its commit point; only [Store.Recover] works until it is finished.
	ErrPending = errors.New("an interrupted restore has to be finished by Recover")
	// ErrLocked: somebody else holds the lock that this call does not wait for.
	ErrLocked = errors.New("in use by another call")
	// ErrPinned: a pinned checkpoint is not deleted; unpin it first.
	ErrPinned = errors.New("the checkpoint is pinned")
	// ErrUnsupported: this system or file system, or the options, cannot do it. It matches errors.ErrUnsupported too.
	ErrUnsupported = fmt.Errorf("rollback: %w", errors.ErrUnsupported)
	// ErrClosed: the store is closed, or is a zero Store.
	ErrClosed = errors.New("the store is closed")
)

// CorruptError says what in the store is damaged. It matches [ErrCorrupt].
type CorruptError struct {
	ID     ID     // the checkpoint that needs it; zero if none was asked for
	Object string // the file or object, relative to the store
	Why    string
}

func (e *CorruptError) Error() string {
	if e.ID.IsZero() {
		return fmt.Sprintf("rollback: %s: %s: %v", e.Object, e.Why, ErrCorrupt)
	}
	return fmt.Sprintf("rollback: checkpoint %s: %s: %s: %v", e.ID, e.Object, e.Why, ErrCorrupt)
}

// Is matches [ErrCorrupt].
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// TargetError says why a directory is refused. It matches [ErrTarget].
type TargetError struct{ Path, Reason string }

func (e *TargetError) Error() string {
	return fmt.Sprintf("rollback: %s is refused: %s", e.Path, e.Reason)
}

// Is matches [ErrTarget].
func (e *TargetError) Is(target error) bool { return target == ErrTarget }

// UnstableError names the files that kept changing. It matches [ErrUnstable].
type UnstableError struct{ Paths []string }

func (e *UnstableError) Error() string {
	return fmt.Sprintf("rollback: %v: %s; stop whoever writes there and try again", ErrUnstable, quoted(e.Paths))
}

// Is matches [ErrUnstable].
func (e *UnstableError) Is(target error) bool { return target == ErrUnstable }

// LimitError says which bound is exceeded. It matches [ErrTooLarge].
type LimitError struct {
	Path         string // where it was noticed, relative to the root
	Limit        string // field of Limits
	Value, Bound int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("rollback: %q: %d is more than Limits.%s, %d; exclude it or raise the limit", e.Path, e.Value, e.Limit, e.Bound)
}

// Is matches [ErrTooLarge].
func (e *LimitError) Is(target error) bool { return target == ErrTooLarge }

// RestoreError says in which phase a restore failed. Committed tells which tree stands: false, the old one; true, the new
// one as soon as [Store.Recover] has finished it. It matches [ErrPending] if Committed.
type RestoreError struct {
	Phase     string
	Committed bool
	Err       error
}

func (e *RestoreError) Error() string {
	if e.Committed {
		return fmt.Sprintf("rollback: %s: %v; the restore is committed, call Recover to finish it", e.Phase, e.Err)
	}
	return fmt.Sprintf("rollback: %s: %v; the tree is as it was", e.Phase, e.Err)
}

// Is matches [ErrPending] after the commit point.
func (e *RestoreError) Is(target error) bool { return e.Committed && target == ErrPending }

// Unwrap returns what failed.
func (e *RestoreError) Unwrap() error { return e.Err }

// quoted names a few paths, so that a message stays readable.
func quoted(paths []string) string {
	const most = 5
	var b strings.Builder
	for i, p := range paths {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(paths)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", p)
	}
	return b.String()
}
