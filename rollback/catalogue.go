// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
)

// catalogue remembers the manifests that were read, which do not change. It spares a checkpoint the reading of all
// others; whoever wants to restore or to show one reads it again.
type catalogue struct {
	mu    sync.Mutex
	known map[ID]*manifest
}

// listed is a manifest, or why there is none.
type listed struct {
	id  ID
	m   *manifest
	err error
}

// list returns all checkpoints, newest first, then what cannot be read. With fresh every file is read again. The
// manifests must not be changed.
func (s *Store) list(fresh bool) ([]listed, error) {
	entries, err := fs.ReadDir(s.dir.FS(), manifestsDir)
	if err != nil {
		return nil, fmt.Errorf("rollback: %s: %w", s.path, err)
	}
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	old, known := s.seen.known, make(map[ID]*manifest, len(entries))
	var broken []listed
	for _, e := range entries {
		id, err := ParseID(e.Name())
		if err != nil {
			name := manifestsDir + "/" + e.Name()
			broken = append(broken, listed{err: &CorruptError{Object: name, Why: "not the name of a manifest"}})
			continue
		}
		if m := old[id]; m != nil && !fresh {
			known[id] = m
			continue
		}
		m, err := s.manifest(id)
		if err != nil {
			broken = append(broken, listed{id: id, err: err})
			continue
		}
		known[id] = &m
	}
	s.seen.known = known
	return append(newestFirst(known), broken...), nil
}

func newestFirst(known map[ID]*manifest) []listed {
	all := make([]listed, 0, len(known))
	for id, m := range maps.All(known) {
		all = append(all, listed{id: id, m: m})
	}
	slices.SortFunc(all, func(a, b listed) int {
		return cmp.Or(cmp.Compare(b.m.Seq, a.m.Seq), b.m.Time.Compare(a.m.Time), slices.Compare(a.id[:], b.id[:]))
	})
	return all
}

// last returns the newest sealed checkpoint of a tree.
func (s *Store) last(treeKey string) (id ID, ok bool, err error) {
	all, err := s.list(false)
	if err != nil {
		return ID{}, false, err
	}
	for _, l := range all {
		if l.m != nil && l.m.TreeKey == treeKey {
			return l.id, true, nil
		}
	}
	return ID{}, false, nil
}
