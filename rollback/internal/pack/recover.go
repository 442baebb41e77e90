// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// recoverTable makes the table again from the records that are whole: their CRC is right. It looks at every offset after
// a damaged place, for the bytes that a record begins with. Files of a tree can hold such bytes on purpose; what is found
// there is harmless, since an object counts by its hash, and the work is bounded by a few times the file's size.
func recoverTable(r io.ReaderAt, size int64) table {
	var t table
	budget, window := 4*size+64<<20, make([]byte, 64<<10)
	for at := int64(len(fileMagic)); budget > 0; {
		found, looked := nextMagic(r, at, size, window)
		budget -= looked
		if found < 0 {
			break
		}
		h, ok, read := wholeRecord(r, found, size)
		budget -= read + headerLen
		if !ok {
			at = found + 1
			continue
		}
		rec := row{key: h.key, offset: found, stored: h.stored, raw: h.raw}
		t = appendRow(t, rec)
		at = found + rec.size()
	}
	return t.sorted()
}

// nextMagic returns the first offset from at on where a record may begin, or -1, and how many bytes it read.
func nextMagic(r io.ReaderAt, at, size int64, window []byte) (found, looked int64) {
	for step := int64(len(recordMagic)); at+headerLen+crcLen <= size; {
		if step < int64(len(window)) {
			step *= 8 // a sound record follows at once
		}
		b := window[:min(step, int64(len(window)), size-at)]
		n, err := r.ReadAt(b, at)
		looked += int64(n)
		if i := bytes.Index(b[:n], []byte(recordMagic)); i >= 0 {
			return at + int64(i), looked
		}
		if err != nil {
			return -1, looked
		}
		at += int64(n - len(recordMagic) + 1)
	}
	return -1, looked
}

// wholeRecord reports whether a record with a right CRC begins at the offset, and how many bytes it read.
func wholeRecord(r io.ReaderAt, at, size int64) (h header, ok bool, read int64) {
	var b [headerLen]byte
	if readAt(r, b[:], at) != nil {
		return h, false, 0
	}
	h, err := parseHeader(b[:])
	if err != nil || headerLen+h.stored+crcLen > size-at {
		return h, false, 0
	}
	sum := crc32.New(castagnoli)
	_, _ = sum.Write(b[:])
	read, err = io.Copy(sum, io.NewSectionReader(r, at+headerLen, h.stored))
	if err != nil || read != h.stored {
		return h, false, read
	}
	var want [crcLen]byte
	err = readAt(r, want[:], at+headerLen+h.stored)
	return h, err == nil && binary.BigEndian.Uint32(want[:]) == sum.Sum32(), read
}
