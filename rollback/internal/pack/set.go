// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/evoseal/containment/rollback/internal/files"
	"github.com/evoseal/containment/rollback/internal/object"
)

// Dir is where the packs are in a store.
const Dir = "packs"

// Set is all packs of a store. Its methods may be called at the same time.
type Set struct {
	dir     *files.Dir
	handles handles

	mu    sync.RWMutex
	packs []*packFile // references of the index count into it
	index index
	bad   map[object.Key]bool // found damaged by Get: not present, whatever the tables say
}

// Open reads the tables of all packs. A damaged pack is no error here: see Check.
func Open(dir *files.Dir) (*Set, error) {
	s := &Set{dir: dir, handles: handles{dir: dir}}
	if err := s.Refresh(); err != nil {
		return nil, err
	}
	return s, nil
}

// Close closes the files.
func (s *Set) Close() { s.handles.close() }

// Refresh sees packs that other processes added or removed.
func (s *Set) Refresh() error {
	names, err := s.list()
	if err != nil {
		return fmt.Errorf("list %s: %w", Dir, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, gone := map[object.Hash]bool{}, map[*packFile]bool{}
	for _, p := range s.packs {
		if names[p.name] && (p.fault == nil || errors.Is(p.fault, ErrDamaged)) {
			known[p.name] = true
		} else {
			gone[p] = true // or it could not be read, and is tried again
		}
	}
	s.remove(gone)
	for name := range names {
		if !known[name] {
			if err := s.adopt(load(s.dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// list returns the names of the packs that are there. What has another name is none of ours and is left alone.
func (s *Set) list() (map[object.Hash]bool, error) {
	entries, err := fs.ReadDir(s.dir.FS(), Dir)
	if err != nil {
		return nil, err
	}
	names := make(map[object.Hash]bool, len(entries))
	for _, e := range entries {
		if name, ok := parseName(e.Name()); ok {
			names[name] = true
		}
	}
	return names, nil
}

// adopt adds a pack to the index. The lock is held.
func (s *Set) adopt(p *packFile) error {
	if len(s.packs) >= maxPacks {
		return fmt.Errorf("the store has more than %d packs; prune it", maxPacks)
	}
	s.packs = append(s.packs, p)
	s.add(len(s.packs) - 1)
	return nil
}

func (s *Set) add(pack int) {
	t := s.packs[pack].table
	s.index.room(t.rows(), s.prefix)
	for i := range t.rows() {
		s.index.add(t.prefix(i), ref(pack, i))
	}
}

func (s *Set) prefix(slot uint64) uint64 {
	pack, row := deref(slot)
	return s.packs[pack].table.prefix(row)
}

// rebuild makes the index again for these packs. The lock is held.
func (s *Set) rebuild(packs []*packFile) {
	s.packs, s.index = packs, index{}
	for i := range packs {
		s.add(i)
	}
}

// remove forgets packs. The lock is held.
func (s *Set) remove(gone map[*packFile]bool) {
	if len(gone) > 0 {
		s.rebuild(slices.DeleteFunc(s.packs, func(p *packFile) bool { return gone[p] }))
		s.handles.forget(gone)
	}
}

// place is where an object is.
type place struct {
	pack *packFile
	row  row
}

// find returns every place of the object, those in sound packs first. It is nil for most that are not there.
func (s *Set) find(k *object.Key) []place {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var places []place
	s.each(k, func(p *packFile, i int) bool {
		places = append(places, place{p, p.table.at(i)})
		return true
	})
	slices.SortStableFunc(places, func(a, b place) int {
		return cmp.Compare(unsound(a.pack), unsound(b.pack))
	})
	return places
}

func unsound(p *packFile) int {
	if p.fault != nil {
		return 1
	}
	return 0
}

// each calls yield for the places of an object until it returns false. The lock is held for reading.
func (s *Set) each(k *object.Key, yield func(p *packFile, row int) bool) {
	if len(s.index.slots) == 0 {
		return
	}
	at, tag := s.index.place(prefixOf(k))
	for {
		slot, after := s.index.next(at, tag)
		if slot == 0 {
			return
		}
		pack, row := deref(slot)
		if p := s.packs[pack]; p.table.is(row, k) && !yield(p, row) {
			return
		}
		at = after
	}
}

// Has reports whether the object is in a pack whose table is sound, and was not found damaged there.
func (s *Set) Has(k object.Key) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	has := false
	s.each(&k, func(p *packFile, _ int) bool {
		has = p.fault == nil
		return !has
	})
	return has && !s.bad[k]
}

// Len returns how many bytes the object has, and whether any pack has it. It does not read it.
func (s *Set) Len(k object.Key) (raw int64, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.each(&k, func(p *packFile, i int) bool {
		raw, ok = p.table.at(i).raw, true
		return false
	})
	return raw, ok
}

// StoredLen returns how many bytes the object's record has, 0 if no pack has it.
func (s *Set) StoredLen(k object.Key) (n int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.each(&k, func(p *packFile, i int) bool {
		n = p.table.at(i).size()
		return false
	})
	return n
}
