// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/evoseal/containment/rollback/internal/object"
)

// The stat cache says what an earlier scan found: one file, checked by one sum, decoded in place. Numbers are little
// endian, offsets count from the beginning of the file.
//
//	header  magic 8, fingerprint 32, start 8+4, pad 4, turn 8, entries 8, body length 8,
//	        body sum 4, generation 32, header sum 4
//	body    the root's record, then blocks
//	block   count 4, hash of the tree object 32, content 32, and that many records in byte order of the names
//	record  see the offsets below; then name, target, group, attributes, chunk list
//
// The sum is there against torn writes and bad disks. It is no defence against whoever can write into the store.
const (
	cacheMagic  = "rbcache\x03"
	headerLen   = 120
	blockLen    = 4 + 32 + 32
	recordLen   = 112
	maxCacheLen = 1 << 31 // bytes; a tree that needs more is scanned without a cache
)

// Offsets in the header and in a record.
const (
	hFingerprint, hSec, hNsec, hTurn, hEntries, hBody, hBodySum, hGeneration, hSum = 8, 40, 48, 56, 64, 72, 80, 84, 116

	rLen, rKind, rType, rName, rMode, rUID, rGID, rNsec = 0, 4, 5, 6, 8, 12, 16, 20
	rSec, rCtime, rCtimeNsec, rNlink, rIno, rSize       = 24, 32, 40, 44, 48, 56
	rHash, rTarget, rGroup, rXattrs, rChunks            = 64, 96, 100, 104, 108
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	le         = binary.LittleEndian
)

// Cache is a stat cache that was read. A nil Cache knows nothing.
type Cache struct {
	data        []byte
	fingerprint [32]byte
	start       stamp // time of the file system when the scan began that wrote it
	turn        uint64
	entries     int
	generation  object.Hash // of the sink, when it had all that the cache names; zero: nobody knows
}

// stamp is a time of a file system.
type stamp struct {
	sec  int64
	nsec uint32
}

func (s stamp) before(t stamp) bool { return s.sec < t.sec || s.sec == t.sec && s.nsec < t.nsec }

// minus never leaves the range of a stamp, so that no slack can turn an early time into a late one.
func (s stamp) minus(nsec int64) stamp {
	sec, rest := s.sec-nsec/1e9, int64(s.nsec)-nsec%1e9
	if rest < 0 {
		sec, rest = sec-1, rest+1e9
	}
	return stamp{sec, uint32(rest)}
}

// ParseCache takes what [Result.CacheFile] returned. Whatever is not whole gives nil: a damaged cache is a miss, and
// never an error. The cache keeps data.
func ParseCache(data []byte) *Cache {
	if len(data) < headerLen+recordLen || len(data) > maxCacheLen || string(data[:8]) != cacheMagic {
		return nil
	}
	if crc32.Checksum(data[:hSum], castagnoli) != le.Uint32(data[hSum:]) {
		return nil
	}
	body := data[headerLen:]
	if le.Uint64(data[hBody:]) != uint64(len(body)) || crc32.Checksum(body, castagnoli) != le.Uint32(data[hBodySum:]) {
		return nil
	}
	return &Cache{
		data: data, fingerprint: [32]byte(data[hFingerprint:]),
		start:      stamp{int64(le.Uint64(data[hSec:])), le.Uint32(data[hNsec:])},
		generation: object.Hash(data[hGeneration:]),
		turn:       le.Uint64(data[hTurn:]), entries: int(min(le.Uint64(data[hEntries:]), uint64(len(body)/recordLen))),
	}
}

// record is one entry of a cache, with everything that varies in length behind the fixed part. Its lengths were
// checked.
type record []byte

// record returns the record at off, or nil if there cannot be one.
func (c *Cache) record(off uint32) record {
	if c == nil || off < headerLen || uint64(off)+recordLen > uint64(len(c.data)) {
		return nil
	}
	b := c.data[off:]
	size := uint64(le.Uint32(b[rLen:]))
	need := recordLen + uint64(le.Uint16(b[rName:])) + uint64(le.Uint32(b[rTarget:])) + uint64(le.Uint32(b[rGroup:])) +
		uint64(le.Uint32(b[rXattrs:])) + uint64(le.Uint32(b[rChunks:]))
	if size != need || size > uint64(len(b)) {
		return nil
	}
	return record(b[:size])
}

func (r record) kind() object.Kind { return object.Kind(r[rKind]) }
func (r record) ctime() stamp      { return stamp{int64(le.Uint64(r[rCtime:])), le.Uint32(r[rCtimeNsec:])} }
func (r record) mtime() stamp      { return stamp{int64(le.Uint64(r[rSec:])), le.Uint32(r[rNsec:])} }
func (r record) key() object.Key {
	return object.Key{Type: object.Type(r[rType]), Hash: object.Hash(r[rHash:])}
}
func (r record) block() uint32  { return le.Uint32(r[rHash:]) }
func (r record) name() []byte   { return r[recordLen:][:le.Uint16(r[rName:])] }
func (r record) target() []byte { return r.tail(0) }
func (r record) group() []byte  { return r.tail(1) }
func (r record) xattrs() []byte { return r.tail(2) }
func (r record) chunks() []byte { return r.tail(3) }

// tail returns the i-th of the parts after the name.
func (r record) tail(i int) []byte {
	off := uint32(recordLen) + uint32(le.Uint16(r[rName:]))
	for k := range i {
		off += le.Uint32(r[rTarget+4*k:])
	}
	return r[off:][:le.Uint32(r[rTarget+4*i:])]
}

// sameStat reports whether everything that a change of the bytes would move is as it was.
func (r record) sameStat(n *Node) bool {
	return r.sameAttributes(n) && le.Uint64(r[rIno:]) == n.Stat.Ino &&
		int64(le.Uint64(r[rCtime:])) == n.Stat.CtimeSec && le.Uint32(r[rCtimeNsec:]) == n.Stat.CtimeNsec
}

// sameAttributes compares what a checkpoint holds beside the data, names, attributes and groups.
func (r record) sameAttributes(n *Node) bool {
	return object.Kind(r[rKind]) == n.Kind && le.Uint32(r[rMode:]) == n.Mode &&
		int64(le.Uint64(r[rSec:])) == n.Sec && le.Uint32(r[rNsec:]) == n.Nsec &&
		int64(le.Uint64(r[rSize:])) == n.Size &&
		le.Uint32(r[rUID:]) == n.Stat.UID && le.Uint32(r[rGID:]) == n.Stat.GID
}

// cursor goes through the records of one block.
type cursor struct {
	c    *Cache
	off  uint32
	left uint32
	all  bool // no record was passed over
}

// open returns a cursor for the block of a directory's record. Without one it is a cursor over nothing.
func (c *Cache) open(dir record) cursor {
	if dir == nil || dir.kind() != object.Dir {
		return cursor{}
	}
	off := dir.block()
	if off < headerLen || uint64(off)+blockLen > uint64(len(c.data)) {
		return cursor{}
	}
	return cursor{c: c, off: off + blockLen, left: le.Uint32(c.data[off:]), all: true}
}

// sums returns the hashes of a directory, which open has found a block of.
func (c *Cache) sums(dir record) (tree object.Key, content object.Hash) {
	b := c.data[dir.block()+4:]
	return object.Key{Type: object.Tree, Hash: object.Hash(b)}, object.Hash(b[32:])
}

// find returns the record of that name and its offset. Names must be asked for in byte order.
func (cur *cursor) find(name string) (record, uint32) {
	for cur.left > 0 {
		r := cur.c.record(cur.off)
		if r == nil {
			break
		}
		have := r.name()
		if string(have) > name {
			return nil, 0
		}
		off := cur.off
		cur.off, cur.left = cur.off+uint32(len(r)), cur.left-1
		if string(have) == name {
			return r, off
		}
		cur.all = false
	}
	if cur.left > 0 {
		cur.left, cur.all = 0, false // damaged
	}
	return nil, 0
}

// complete reports whether all that the block holds was asked for.
func (cur *cursor) complete() bool { return cur.all && cur.left == 0 }
