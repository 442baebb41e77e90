// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"crypto/sha256"
	"encoding/binary"
	"io"

	"github.com/evoseal/containment/rollback/internal/object"
)

const (
	fileMagic    = "rbPACK1\n"
	trailerMagic = "rbEND01\n"
	trailerLen   = 8 + 8 + 32 + 8
)

// footer is the table and the trailer of a pack whose records end at this offset, and the pack's name.
func footer(t table, end int64) ([]byte, object.Hash) {
	b := append(make([]byte, 0, len(t)+trailerLen), t...)
	b = binary.BigEndian.AppendUint64(b, uint64(t.rows()))
	b = binary.BigEndian.AppendUint64(b, uint64(end))
	sum := sha256.Sum256(b)
	b = append(b, sum[:]...)
	return append(b, trailerMagic...), sum
}

// readTable reads and checks the table of a pack of this size and name. Where the records end is where it begins. The
// error matches ErrDamaged unless reading itself failed.
func readTable(r io.ReaderAt, size int64, name object.Hash) (t table, end int64, err error) {
	if size < int64(len(fileMagic))+trailerLen {
		return nil, 0, damagef("%d bytes are no pack", size)
	}
	var magic [len(fileMagic)]byte
	if err := readAt(r, magic[:], 0); err != nil {
		return nil, 0, err
	}
	var trailer [trailerLen]byte
	if err := readAt(r, trailer[:], size-trailerLen); err != nil {
		return nil, 0, err
	}
	be := binary.BigEndian
	rows, begin, sum := be.Uint64(trailer[:]), be.Uint64(trailer[8:]), object.Hash(trailer[16:48])
	switch room := size - trailerLen - int64(len(fileMagic)); {
	case string(magic[:]) != fileMagic, string(trailer[48:]) != trailerMagic:
		return nil, 0, damagef("a magic is missing: not a pack, or a part of one")
	case rows > uint64(room)/rowLen, begin != uint64(size-trailerLen)-rows*rowLen:
		return nil, 0, damagef("%d records with a table at %d do not fit into %d bytes", rows, begin, size)
	case sum != name:
		return nil, 0, damagef("the trailer names another pack")
	}
	b := make([]byte, rows*rowLen+16)
	if err := readAt(r, b, int64(begin)); err != nil {
		return nil, 0, err
	}
	if sha256.Sum256(b) != sum {
		return nil, 0, damagef("the table has another hash")
	}
	t, end = b[:rows*rowLen:rows*rowLen], int64(begin)
	if err := t.check(int64(len(fileMagic)), end); err != nil {
		return nil, 0, damage{err}
	}
	return t, end, nil
}

// readAt fills b. A file that ends before is damage, since its length was looked at.
func readAt(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return damagef("the file ends at %d, within what was written", at+int64(n))
	}
	return err
}
