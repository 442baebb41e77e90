// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/evoseal/containment/rollback/internal/object"
)

const (
	keyLen = 32 + 1
	rowLen = keyLen + 8 + 4 + 4
	// maxRows and maxPacks are what a reference of the index has room for.
	maxRows  = 1<<28 - 1
	maxPacks = 1 << 20
)

// table says where the records of a pack are. It is the bytes of the file: 49 for an object, nothing to parse and no
// pointer for the garbage collector.
type table []byte

// row is one of its lines.
type row struct {
	key         object.Key
	offset      int64
	stored, raw int64
}

// size of the whole record.
func (r row) size() int64 { return headerLen + r.stored + crcLen }

func (t table) rows() int { return len(t) / rowLen }

func (t table) at(i int) row {
	b := t[i*rowLen : (i+1)*rowLen]
	be := binary.BigEndian
	return row{
		key:    object.Key{Type: object.Type(b[32]), Hash: object.Hash(b[:32])},
		offset: int64(be.Uint64(b[33:])), stored: int64(be.Uint32(b[41:])), raw: int64(be.Uint32(b[45:])),
	}
}

func (t table) is(i int, k *object.Key) bool {
	b := t[i*rowLen:]
	return b[32] == byte(k.Type) && object.Hash(b[:32]) == k.Hash
}

func (t table) prefix(i int) uint64 { return binary.BigEndian.Uint64(t[i*rowLen:]) }

func appendRow(t table, r row) table {
	be := binary.BigEndian
	t = append(t, r.key.Hash[:]...)
	t = append(t, byte(r.key.Type))
	t = be.AppendUint64(t, uint64(r.offset))
	t = be.AppendUint32(t, uint32(r.stored))
	return be.AppendUint32(t, uint32(r.raw))
}

// sorted returns the rows in the order of their keys, and of one key in the order of the records.
func (t table) sorted() table {
	type ref struct {
		prefix uint64
		i      int
	}
	refs := make([]ref, t.rows())
	for i := range refs {
		refs[i] = ref{t.prefix(i), i}
	}
	slices.SortFunc(refs, func(a, b ref) int {
		if c := cmp.Compare(a.prefix, b.prefix); c != 0 {
			return c
		}
		return bytes.Compare(t[a.i*rowLen:(a.i+1)*rowLen], t[b.i*rowLen:(b.i+1)*rowLen])
	})
	out := make(table, 0, len(t))
	for _, r := range refs {
		out = append(out, t[r.i*rowLen:(r.i+1)*rowLen]...)
	}
	return out
}

// check judges the table of a pack whose records lie between begin and end.
func (t table) check(begin, end int64) error {
	if t.rows() == 0 || t.rows() > maxRows {
		return errors.New("a pack of no records, or of too many, is never written")
	}
	for i := range t.rows() {
		r := t.at(i)
		if i > 0 && bytes.Compare(t[(i-1)*rowLen:(i-1)*rowLen+keyLen], t[i*rowLen:i*rowLen+keyLen]) >= 0 {
			return fmt.Errorf("row %d of the table is not after the one before it", i)
		}
		if err := checkLengths(r.key.Type, r.raw, r.stored); err != nil {
			return fmt.Errorf("row %d of the table: %w", i, err)
		}
		if r.offset < begin || r.offset > end || r.size() > end-r.offset {
			return fmt.Errorf("row %d of the table points outside the records", i)
		}
	}
	return nil
}
