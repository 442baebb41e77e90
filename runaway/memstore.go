// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
)

// memStore keeps records in memory. Whoever has claimed it is the only one to touch the rest.
type memStore struct {
	claimed atomic.Bool
	runID   string
	records []compact
	whole   map[int]*Record // those that are not compact, by their place in records
}

// UnsafeMemStore returns a store for tests: it forgets everything with the process, so a crash resets every count. It
// survives Close and can be given to Open again. It has no directory, and so no kill file unless Options names one.
func UnsafeMemStore() Store { return &memStore{} }

func (m *memStore) Load(ctx context.Context, runID string, apply func(*Record) error) error {
	if !m.claimed.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: run %q", ErrStateLocked, runID)
	}
	if len(m.records) == 0 {
		m.runID = runID
		return ErrNoState
	}
	if err := m.replay(ctx, runID, apply); err != nil {
		m.claimed.Store(false)
		return err
	}
	return nil
}

func (m *memStore) replay(ctx context.Context, runID string, apply func(*Record) error) error {
	if m.runID != runID {
		return fmt.Errorf("%w: the store has run %q, not %q", ErrStateCorrupt, m.runID, runID)
	}
	for i := range m.records {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r := m.whole[i]
		if r == nil {
			r = m.records[i].record()
		}
		if err := apply(r); err != nil {
			return err
		}
	}
	return nil
}

func (m *memStore) Append(r *Record, _ bool) error {
	if !m.claimed.Load() {
		return ErrClosed
	}
	m.add(r)
	return nil
}

func (m *memStore) Snapshot(r *Record) error {
	if !m.claimed.Load() {
		return ErrClosed
	}
	m.records = m.records[:0]
	clear(m.whole)
	m.add(r)
	return nil
}

func (m *memStore) add(r *Record) {
	m.records = append(m.records, compact{})
	last := len(m.records) - 1
	if m.records[last].pack(r) {
		return
	}
	whole := *r
	whole.Snapshot = slices.Clone(r.Snapshot)
	if m.whole == nil {
		m.whole = map[int]*Record{}
	}
	m.whole[last] = &whole
}

func (m *memStore) Close() error {
	m.claimed.Store(false)
	return nil
}
