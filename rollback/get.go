// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"iter"

	"github.com/evoseal/containment/rollback/internal/object"
)

// Get describes a checkpoint. Its manifest is read and checked; [Store.Verify] checks what it stands for.
func (s *Store) Get(ctx context.Context, id ID) (Checkpoint, error) {
	leave, err := s.enter(ctx, false)
	if err != nil {
		return Checkpoint{}, err
	}
	defer leave()
	m, err := s.manifest(id)
	if err != nil {
		return Checkpoint{}, err
	}
	pins, err := s.pins()
	if err != nil {
		return Checkpoint{}, err
	}
	return s.describe(id, &m, pins)
}

// All yields every checkpoint of the store, of all trees, newest first. One that cannot be read is yielded at the end, as
// an error and with nothing but its ID, and the others are yielded all the same; so is a damaged labels.log, without an
// ID, and then no checkpoint is shown as pinned. No lock is held meanwhile: the loop may
// call the store, and what it gets may have been deleted.
func (s *Store) All(ctx context.Context) iter.Seq2[Checkpoint, error] {
	return func(yield func(Checkpoint, error) bool) {
		list, err := s.describeAll(ctx)
		if err != nil {
			yield(Checkpoint{}, err)
			return
		}
		for _, d := range list {
			if !yield(d.c, d.err) {
				return
			}
		}
	}
}

type described struct {
	c   Checkpoint
	err error
}

func (s *Store) describeAll(ctx context.Context) ([]described, error) {
	leave, err := s.enter(ctx, false)
	if err != nil {
		return nil, err
	}
	defer leave()
	all, err := s.list(true)
	if err != nil {
		return nil, err
	}
	pins, err := s.pins()
	var sound, broken []described
	if err != nil {
		broken = append(broken, described{err: err}) // the checkpoints are there all the same
	}
	for _, l := range all {
		d := described{c: Checkpoint{ID: l.id}, err: l.err}
		if l.m != nil {
			d.c, d.err = s.describe(l.id, l.m, pins)
		}
		switch {
		case d.err == nil:
			sound = append(sound, d)
		case !manifestGone(d.err): // else somebody deleted it since the directory was listed
			broken = append(broken, d)
		}
	}
	return append(sound, broken...), ctx.Err()
}

// skipped reads the list of what a checkpoint left out.
func (s *Store) skipped(m *manifest) ([]Skipped, error) {
	if (m.Skipped == object.Hash{}) {
		return nil, nil
	}
	k := object.Key{Type: object.Skipped, Hash: m.Skipped}
	raw, err := s.object(k)
	if err != nil {
		return nil, err
	}
	list, err := object.DecodeSkipped(raw)
	if err != nil {
		return nil, &CorruptError{Object: k.String(), Why: err.Error()}
	}
	out := make([]Skipped, len(list))
	for i, o := range list {
		out[i] = Skipped{Path: o.Path, Why: o.Why}
	}
	return out, nil
}
