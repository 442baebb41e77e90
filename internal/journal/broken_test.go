// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/evoseal/containment/internal/journal"
)

// After a failed write or sync nothing is tried again, and nothing is believed.
func TestBrokenForGood(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"write run-7.journal", "sync run-7.journal", "rename run-7.new", "sync dir"} {
		m := newMemFS()
		j := create(t, memConfig(m))
		fill(t, j, 0, 3)
		m.before = func(_ int, called string) fault {
			if called == op {
				return fault{err: syscall.EIO, part: true}
			}
			return fault{}
		}
		_, err := j.Append([]byte(`{}`), true)
		if err == nil {
			err = j.Rotate(j.Head(), []byte(`{}`))
		}
		wantError(t, err, journal.ErrBroken)
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: the cause is missing in %v", op, err)
		}
		m.before = nil
		calls := len(m.calls)
		_, err = j.Append([]byte(`{}`), false)
		wantError(t, err, journal.ErrBroken)
		wantError(t, j.Sync(), journal.ErrBroken)
		wantError(t, j.Rotate(j.Head(), []byte(`{}`)), journal.ErrBroken)
		wantError(t, j.Close(), journal.ErrBroken)
		if len(m.calls) != calls {
			t.Errorf("%s failed, and after it %v was called", op, m.calls[calls:])
		}
	}
}

// A rotation that fails before the rename costs nothing but the rotation.
func TestRotateFailsSoftly(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"make run-7.new", "write run-7.new", "truncate run-7.new", "sync run-7.new"} {
		m := newMemFS()
		j := create(t, memConfig(m))
		fill(t, j, 0, 3)
		m.before = func(_ int, called string) fault {
			if called == op {
				return fault{err: syscall.ENOSPC, part: true}
			}
			return fault{}
		}
		wantError(t, j.Rotate(j.Head(), []byte(`{}`)), journal.ErrIO)
		m.before = nil
		fill(t, j, 3, 4)
		closeIt(t, j)
		j = open(t, memConfig(m))
		wantTexts(t, j, `{"i":0}`, `{"i":1}`, `{"i":2}`, `{"i":3}`)
		if err := j.Rotate(j.Head(), []byte(`{}`)); err != nil {
			t.Errorf("after %s failed once: %v", op, err)
		}
		wantTexts(t, j)
		closeIt(t, j)
	}
}
