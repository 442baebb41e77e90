// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/evoseal/containment/rollback/internal/object"
)

// Usage says how much of a pack is needed.
type Usage struct {
	Pack       string // its file, relative to the store
	Size       int64  // of the file, bytes
	Objects    int
	Raw        int64 // of all objects before compression, bytes
	Stored     int64 // all records, bytes
	Live       int   // objects that are needed
	LiveStored int64 // their records, bytes
	Damaged    bool

	pack *packFile
}

// Usage looks at every pack, in the order of their names. With live nil nothing is.
func (s *Set) Usage(live func(object.Key) bool) []Usage {
	var list []Usage
	for _, p := range s.all() {
		u := Usage{Pack: p.path, Size: p.size, Objects: p.table.rows(), Damaged: p.fault != nil, pack: p}
		for i := range p.table.rows() {
			r := p.table.at(i)
			u.Raw += r.raw
			u.Stored += r.size()
			if live != nil && live(r.key) {
				u.Live++
				u.LiveStored += r.size()
			}
		}
		list = append(list, u)
	}
	return list
}

// Repack writes the live objects of these packs into one new pack, durable and named when it returns, and then removes
// the old ones. Each object is read, checked and hashed on the way. It returns by how much the packs got smaller.
//
// The new pack can have the name of one of the old: a repack that was killed before it removed anything has left it.
func (s *Set) Repack(ctx context.Context, tmp string, packs []Usage, live func(object.Key) bool, written func()) (int64, error) {
	w := s.NewWriter(tmp, Raw)
	defer w.Abort()
	var before int64
	for _, u := range packs {
		before += u.Size
		for _, r := range u.pack.byOffset(live) {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			if err := w.copy(place{u.pack, r}); err != nil {
				return 0, &Fault{Pack: u.Pack, Offset: r.offset, Key: r.key, Err: err}
			}
		}
	}
	added, err := w.Seal(ctx)
	if err != nil {
		return 0, err
	}
	written()
	old := slices.DeleteFunc(slices.Clone(packs), func(u Usage) bool { return u.Pack == w.sealed })
	if err := s.Remove(old); err != nil {
		return 0, err
	}
	return before - added, nil
}

// copy appends a record as it is.
func (w *Writer) copy(p place) error {
	f, done, err := w.set.handles.get(p.pack)
	if err != nil {
		return err
	}
	defer done()
	record := make([]byte, p.row.size())
	if err := readAt(f, record, p.row.offset); err != nil {
		return err
	}
	if err := checkCRC(record); err != nil {
		return err
	}
	if _, err := p.row.unpack(record, nil); err != nil {
		return err
	}
	i, err := w.claim(&p.row.key, int(p.row.raw))
	if i < 0 || err != nil {
		return err
	}
	return w.append(i, record)
}

// Remove unlinks packs and flushes their directory. What a crash leaves of it is more, not less.
func (s *Set) Remove(packs []Usage) error {
	if len(packs) == 0 {
		return nil
	}
	gone := map[*packFile]bool{}
	var failed error
	for _, u := range packs {
		if err := s.dir.Remove(u.Pack); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = cmp.Or(failed, err)
			continue
		}
		gone[u.pack] = true
	}
	s.mu.Lock()
	s.remove(gone)
	s.mu.Unlock()
	return cmp.Or(failed, s.dir.SyncDir(Dir))
}

// forget closes what nobody reads any more.
func (h *handles) forget(gone map[*packFile]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p, e := range h.open {
		if gone[p] && e.users == 0 {
			_ = e.file.Close() // it was only read
			delete(h.open, p)
		}
	}
}
