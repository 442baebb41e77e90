// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"errors"
	"io/fs"
	"sync"

	"github.com/evoseal/containment/rollback/internal/object"
)

// ErrMissing: no pack has the object. It matches ErrDamaged too: objects are asked for because something names them.
var ErrMissing = damagef("no pack has it")

// buffers are for stored bytes up to a size that is worth keeping.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const keepBuffer = 1 << 20

// Get reads an object and checks its hash. The bytes are the caller's. If one pack has it damaged and another one sound,
// the sound one is taken. The error is a *Fault.
func (s *Set) Get(k object.Key) ([]byte, error) {
	places := s.find(&k)
	if len(places) == 0 {
		return nil, s.missing(k)
	}
	var first error
	for _, p := range places {
		raw, err := s.read(p)
		if err == nil {
			return raw, nil
		}
		if first == nil {
			first = &Fault{Pack: p.pack.path, Offset: p.row.offset, Key: k, Err: err}
		}
	}
	if errors.Is(first, ErrDamaged) {
		s.distrust(k)
	}
	return nil, first
}

// missing says why no pack has an object: one that could not be read may have it.
func (s *Set) missing(k object.Key) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.packs {
		if p.fault != nil && !errors.Is(p.fault, ErrDamaged) {
			return p.fault
		}
	}
	return &Fault{Key: k, Err: ErrMissing}
}

// distrust makes later checkpoints store the object again.
func (s *Set) distrust(k object.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bad == nil {
		s.bad = map[object.Key]bool{}
	}
	s.bad[k] = true
}

// trust is the opposite, for an object that has just been stored again.
func (s *Set) trust(t table) {
	for i := 0; i < t.rows() && len(s.bad) > 0; i++ {
		delete(s.bad, t.at(i).key)
	}
}

func (s *Set) read(p place) ([]byte, error) {
	f, done, err := s.handles.get(p.pack)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damage{err}
	}
	if err != nil {
		return nil, err
	}
	defer done()
	buf := buffers.Get().(*[]byte)
	defer func() {
		if cap(*buf) <= keepBuffer {
			buffers.Put(buf)
		}
	}()
	*buf = grow((*buf)[:0], int(p.row.size()))[:p.row.size()]
	if err := readAt(f, *buf, p.row.offset); err != nil {
		return nil, err
	}
	raw, err := p.row.unpack(*buf, nil)
	if err == nil && p.row.raw == p.row.stored {
		raw = bytes.Clone(raw) // stored as they are, they are in the buffer
	}
	return raw, err
}

// unpack takes a whole record, compares it with the row and returns the raw bytes, which may be in scratch or in the
// record. The CRC is left to Check: all that it covers is compared here or hashed.
func (r row) unpack(record, scratch []byte) ([]byte, error) {
	h, err := parseHeader(record)
	if err != nil {
		return nil, damage{err}
	}
	if h.key != r.key || h.raw != r.raw || h.stored != r.stored {
		return nil, damagef("the record is not the one that the table names")
	}
	raw, err := h.unpack(record[headerLen:headerLen+h.stored], scratch)
	if err != nil {
		return nil, damage{err}
	}
	return raw, nil
}
