// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/evoseal/containment/rollback/internal/files"
	"github.com/evoseal/containment/rollback/internal/object"
)

// bufferLen is how much is collected for one write. Larger records are written by themselves.
const bufferLen = 1 << 20

var errClosed = errors.New("the pack is sealed or dropped")

// Writer appends objects to one new pack. Add may be called at the same time: hashing and compression happen in the
// caller's goroutine, only the copy into the buffer under a lock. The file is made for the first object.
type Writer struct {
	set   *Set
	tmp   string // file, relative to the store
	codec Codec

	mu     sync.Mutex
	file   *files.File
	err    error // sticky: after it nothing is sealed
	buf    []byte
	size   int64 // with buf
	table  table // unsorted; stored and offset are filled in when the record is there
	index  index
	sealed string // the pack's path, once it has it
}

// NewWriter starts a pack, with its file in the directory tmp, which is relative to the store, until it is sealed.
func (s *Set) NewWriter(tmp string, codec Codec) *Writer {
	return &Writer{set: s, tmp: path.Join(tmp, rand.Text()), codec: codec}
}

// Add stores an object unless the set or the writer has it, and returns its key.
func (w *Writer) Add(t object.Type, raw []byte) (object.Key, error) {
	k := object.Sum(t, raw)
	return k, w.AddHashed(k, raw)
}

// AddHashed is Add for bytes whose key the caller has.
func (w *Writer) AddHashed(k object.Key, raw []byte) error {
	if int64(len(raw)) > maxRaw(k.Type) {
		return fmt.Errorf("a %s of %d bytes is too large for a store", k.Type, len(raw))
	}
	if w.set.Has(k) {
		return nil
	}
	i, err := w.claim(&k, len(raw))
	if i < 0 || err != nil {
		return err
	}
	buf := buffers.Get().(*[]byte)
	*buf = appendRecord((*buf)[:0], k, raw, w.codec)
	err = w.append(i, *buf)
	if cap(*buf) <= 2*keepBuffer {
		buffers.Put(buf)
	}
	return err
}

// claim reserves a row, so that of several callers with the same bytes one stores them. -1: somebody has.
func (w *Writer) claim(k *object.Key, raw int) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return -1, w.err
	}
	if w.find(k) {
		return -1, nil
	}
	n := w.table.rows()
	if n >= maxRows {
		return -1, fmt.Errorf("a pack has room for %d objects", maxRows)
	}
	w.table = appendRow(w.table, row{key: *k, raw: int64(raw)})
	w.index.room(1, func(slot uint64) uint64 {
		_, i := deref(slot)
		return w.table.prefix(i)
	})
	w.index.add(prefixOf(k), ref(0, n))
	return n, nil
}

func (w *Writer) find(k *object.Key) bool {
	if len(w.index.slots) == 0 {
		return false
	}
	at, tag := w.index.place(prefixOf(k))
	for {
		slot, after := w.index.next(at, tag)
		if slot == 0 {
			return false
		}
		if _, i := deref(slot); w.table.is(i, k) {
			return true
		}
		at = after
	}
}

// append writes the record of row i.
func (w *Writer) append(i int, record []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if w.size == 0 {
		w.write([]byte(fileMagic))
	}
	r := w.table.at(i)
	r.offset, r.stored = w.size, int64(len(record)-headerLen-crcLen)
	_ = appendRow(w.table[:i*rowLen], r) // in place
	w.write(record)
	return w.err
}

// write collects bytes and passes them on in large pieces. The first error stays.
func (w *Writer) write(b []byte) {
	w.size += int64(len(b))
	large := len(b) > bufferLen/2
	if large || len(w.buf)+len(b) > bufferLen {
		w.flush() // what was collected stands before b
	}
	if large {
		w.pass(b)
		return
	}
	if w.buf == nil {
		w.buf = make([]byte, 0, bufferLen)
	}
	w.buf = append(w.buf, b...)
}

func (w *Writer) flush() {
	w.pass(w.buf)
	w.buf = w.buf[:0]
}

func (w *Writer) pass(b []byte) {
	if w.err != nil || len(b) == 0 {
		return
	}
	if w.file == nil {
		if w.file, w.err = w.set.dir.Create(w.tmp); w.err != nil {
			return
		}
	}
	if _, w.err = w.file.Write(b); w.err == nil {
		w.file.WriteBehind()
	}
}

// Seal makes the pack durable and gives it its name: from then on the set has its objects. It returns how many bytes the
// store grew by. If nothing was added there is no file. No Add may be running.
func (w *Writer) Seal(ctx context.Context) (added int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = ctx.Err()
	}
	if w.err != nil || w.size == 0 {
		err := w.err
		w.drop()
		return 0, err
	}
	p := &packFile{end: w.size, table: w.table.sorted()}
	tail, name := footer(p.table, p.end)
	w.write(tail)
	w.flush()
	p.name, p.path, p.size = name, fileName(name), w.size
	w.finish(p.path)
	if w.err == nil {
		w.err = w.set.sealed(p)
	}
	err = w.err
	w.drop()
	if err != nil {
		return 0, err
	}
	w.sealed = p.path
	return p.size, nil
}

// finish flushes the file and gives it its name. The name of a pack follows from its objects, so what may have it
// already is the same.
func (w *Writer) finish(name string) {
	if w.err == nil {
		w.err = w.file.Sync()
	}
	if w.err == nil {
		w.err = w.file.Close()
	}
	if w.err == nil {
		w.err = w.set.dir.Rename(w.tmp, name)
	}
}

// sealed makes the set know a new pack.
func (s *Set) sealed(p *packFile) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trust(p.table)
	for i, old := range s.packs {
		if old.name == p.name { // a Refresh saw it first, or it was damaged
			s.packs[i] = p
			s.rebuild(s.packs)
			return nil
		}
	}
	return s.adopt(p)
}

// Abort drops the pack, unless it is sealed.
func (w *Writer) Abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop()
}

// drop forgets everything. A file that was renamed is out of its reach.
func (w *Writer) drop() {
	if w.file != nil {
		_ = w.file.Close() // flushed before, or not wanted
		_ = w.set.dir.Remove(w.tmp)
	}
	w.file, w.buf, w.table, w.index, w.size, w.err = nil, nil, nil, index{}, 0, errClosed
}
