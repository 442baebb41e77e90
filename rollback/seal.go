// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// seal writes the manifest durably: the moment from which the checkpoint exists. It fills in Store and Seq, and Time and
// Parent if they are zero. All objects must be sealed before. The caller holds the store's lock.
func (s *Store) seal(ctx context.Context, m manifest) (Checkpoint, error) {
	if err := checkMeta(m.Meta); err != nil {
		return Checkpoint{}, err
	}
	// Two checkpoints must not take one number. The lock of the directory of manifests is held for this alone.
	unlock, err := s.lock(ctx, manifestsDir, lockMode{exclusive: true, wait: true})
	if err != nil {
		return Checkpoint{}, err
	}
	defer unlock()
	all, err := s.list(false)
	if err != nil {
		return Checkpoint{}, err
	}
	s.complete(&m, all)
	if err := m.check(); err != nil {
		return Checkpoint{}, fmt.Errorf("rollback: manifest: %w", err)
	}
	if !s.packs.Has(m.Root.Data) {
		return Checkpoint{}, &CorruptError{Object: m.Root.Data.String(), Why: "the root of the checkpoint was not stored"}
	}
	data, id, err := encodeManifest(&m, s.options.Key)
	if err != nil {
		return Checkpoint{}, err
	}
	s.step("seal/write")
	if err := s.writeFile(manifestPath(id), data); err != nil {
		_ = s.dir.Remove(manifestPath(id)) // it may have its name, but not be durable
		return Checkpoint{}, err
	}
	s.step("seal/done")
	return s.describe(id, &m, nil)
}

// complete fills in what follows from the other checkpoints.
func (s *Store) complete(m *manifest, all []listed) {
	m.Store, m.Seq = s.id, 1
	if m.Parent.IsZero() {
		m.Parent = m.Meta.Parent
	}
	for _, l := range all {
		if l.m == nil {
			m.Seq++ // its number is unknown
			continue
		}
		m.Seq = max(m.Seq, l.m.Seq+1)
		if m.Parent.IsZero() && l.m.TreeKey == m.TreeKey {
			m.Parent = l.id // the list is newest first
		}
	}
	if m.Time.IsZero() {
		m.Time = time.Now()
	}
	m.Time = m.Time.Round(0).UTC() // what is written is what is read
	m.Meta.Parent = m.Parent
}

// describe makes a manifest what callers see.
func (s *Store) describe(id ID, m *manifest, pins map[ID]string) (Checkpoint, error) {
	c := Checkpoint{
		ID: id, Parent: m.Parent, Tree: m.Tree, Time: m.Time, Seq: m.Seq, Kind: m.Kind,
		Meta: Meta{Label: m.Meta.Label, Parent: m.Parent}, Digest: m.digest(), Pinned: pins[id],
		Files: m.Files, Dirs: m.Dirs, Links: m.Links, Bytes: m.Bytes, Added: m.Added,
	}
	if len(m.Meta.Values) > 0 {
		c.Meta.Values = make(map[string]string, len(m.Meta.Values))
		for k, v := range m.Meta.Values {
			c.Meta.Values[k] = v
		}
	}
	skipped, err := s.skipped(m)
	c.Skipped = skipped
	return c, corrupt(id, err)
}

// manifestGone tells a checkpoint that was deleted meanwhile from a real failure.
func manifestGone(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}
