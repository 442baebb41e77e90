// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/evoseal/containment/rollback/internal/pack"
)

// Stats sums up the store. What cannot be read is counted where it can be, and is no error: see [Store.Verify].
func (s *Store) Stats(ctx context.Context) (Stats, error) {
	var st Stats
	leave, err := s.enter(ctx, false)
	if err != nil {
		return st, err
	}
	defer leave()
	all, err := s.list(false)
	if err != nil {
		return st, err
	}
	pins, err := s.pins()
	if err != nil {
		return st, err
	}
	trees := map[string]bool{}
	for _, l := range all {
		st.Checkpoints++
		if _, pinned := pins[l.id]; pinned {
			st.Pinned++
		}
		if l.m != nil {
			trees[l.m.TreeKey] = true
		}
	}
	st.Trees = len(trees)
	for _, u := range s.packs.Usage(nil) {
		st.Packs++
		st.Objects += u.Objects
		st.Bytes += u.Size
		st.Raw += u.Raw
	}
	manifests, err := s.sizeBelow(ctx, manifestsDir)
	if err != nil {
		return st, err
	}
	st.Bytes += manifests
	st.Quarantine, err = s.sizeBelow(ctx, quarantineDir)
	return st, err
}

// sizeBelow adds the sizes of the regular files below a directory of the store.
func (s *Store) sizeBelow(ctx context.Context, name string) (size int64, err error) {
	err = fs.WalkDir(s.dir.FS(), name, func(_ string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil || !d.Type().IsRegular():
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		return size, fmt.Errorf("rollback: %s: %w", s.join(name), err)
	}
	return size, nil
}

// byLiveShare sorts packs by how much of them is needed, the least first.
func byLiveShare(usage []pack.Usage) []pack.Usage {
	sorted := slices.Clone(usage)
	share := func(u pack.Usage) float64 { return float64(u.LiveStored) / float64(max(1, u.Stored)) }
	slices.SortStableFunc(sorted, func(a, b pack.Usage) int { return cmp.Compare(share(a), share(b)) })
	return sorted
}
