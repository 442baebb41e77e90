// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/s2"

	"github.com/evoseal/containment/rollback/internal/object"
)

// Codec compresses records.
type Codec uint8

const (
	Raw Codec = 0
	S2  Codec = 1
)

const (
	recordMagic = "rbO\x01"
	headerLen   = 4 + 1 + 1 + 2 + 4 + 4 + 32
	crcLen      = 4
	// maxOther bounds objects that are no Blobs. A directory of a million names of 255 bytes is below it.
	maxOther = 512 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxRaw is the most bytes that an object of this type has; 0: there is no such type.
func maxRaw(t object.Type) int64 {
	switch t {
	case object.Blob:
		return object.MaxBlob
	case object.Chunks, object.Tree, object.Skipped:
		return maxOther
	}
	return 0
}

// header is what stands before the data of a record.
type header struct {
	key         object.Key
	codec       Codec
	raw, stored int64
}

// checkLengths holds for every object that was ever written: what does not get smaller is stored as it is.
func checkLengths(t object.Type, raw, stored int64) error {
	switch {
	case maxRaw(t) == 0:
		return fmt.Errorf("type %d is unknown", t)
	case raw > maxRaw(t), stored > raw:
		return fmt.Errorf("a %s of %d bytes in %d cannot be", t, raw, stored)
	}
	return nil
}

func parseHeader(b []byte) (header, error) {
	be := binary.BigEndian
	h := header{
		key:   object.Key{Type: object.Type(b[4]), Hash: object.Hash(b[16:48])},
		codec: Codec(b[5]), raw: int64(be.Uint32(b[8:])), stored: int64(be.Uint32(b[12:])),
	}
	switch {
	case string(b[:4]) != recordMagic:
		return h, errors.New("no record begins here")
	case h.codec > S2, b[6] != 0, b[7] != 0:
		return h, errors.New("the record is of an unknown kind")
	case h.codec == Raw && h.raw != h.stored:
		return h, errors.New("the record's lengths contradict each other")
	}
	return h, checkLengths(h.key.Type, h.raw, h.stored)
}

// appendRecord appends a whole record to b, compressed if that saves more than 5 %.
func appendRecord(b []byte, k object.Key, raw []byte, codec Codec) []byte {
	start := len(b)
	b = append(b, make([]byte, headerLen)...)
	if codec == S2 {
		b = grow(b, s2.MaxEncodedLen(len(raw))+crcLen)
		data := s2.Encode(b[len(b):cap(b)], raw)
		if len(data) < len(raw)-len(raw)/20 {
			b = b[:len(b)+len(data)]
		} else {
			codec = Raw
		}
	}
	if codec == Raw {
		b = append(b, raw...)
	}
	be, h := binary.BigEndian, b[start:]
	copy(h, recordMagic)
	h[4], h[5] = byte(k.Type), byte(codec)
	be.PutUint32(h[8:], uint32(len(raw)))
	be.PutUint32(h[12:], uint32(len(b)-start-headerLen))
	copy(h[16:], k.Hash[:])
	return be.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// grow makes room for n more bytes.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	return append(make([]byte, 0, len(b)+n), b...)
}

// unpack returns the raw bytes of a record's data, with their hash checked. They are in scratch if that is large enough,
// or are the data themselves.
func (h header) unpack(data, scratch []byte) ([]byte, error) {
	raw := data
	if h.codec == S2 {
		if n, err := s2.DecodedLen(data); err != nil || int64(n) != h.raw {
			return nil, errors.New("the compressed data have another length")
		}
		var err error
		if raw, err = s2.Decode(grow(scratch[:0], int(h.raw))[:h.raw], data); err != nil {
			return nil, fmt.Errorf("the compressed data are damaged: %w", err)
		}
	}
	if object.Sum(h.key.Type, raw) != h.key {
		return nil, errHash
	}
	return raw, nil
}

var errHash = errors.New("the bytes have another hash")
