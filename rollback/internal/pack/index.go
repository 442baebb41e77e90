// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"github.com/evoseal/containment/rollback/internal/object"
)

// index finds rows of tables by key: a hash table of references, half empty at least, without pointers. The place comes
// from the first bytes of the key times a random number, so that nobody can prepare files whose keys crowd together.
type index struct {
	slots []uint64 // tag 16, pack 20, row+1 28 bits; 0 is free
	used  int
	seed  uint64
}

func ref(pack, row int) uint64 { return uint64(pack)<<28 | uint64(row+1) }

func deref(slot uint64) (pack, row int) {
	return int(slot >> 28 & (maxPacks - 1)), int(slot&(1<<28-1)) - 1
}

func prefixOf(k *object.Key) uint64 { return binary.BigEndian.Uint64(k.Hash[:]) }

// place is where the search for a key begins; the tag tells most other keys apart without a look at their rows.
func (x *index) place(prefix uint64) (at, tag uint64) {
	h := prefix * x.seed
	return h >> (64 - bits.TrailingZeros(uint(len(x.slots)))), h & 0xffff << 48
}

// next returns the first reference from at on that can be the key's, and where to go on; 0: there is none.
func (x *index) next(at, tag uint64) (slot, after uint64) {
	mask := uint64(len(x.slots) - 1)
	for ; ; at++ {
		switch slot := x.slots[at&mask]; {
		case slot == 0:
			return 0, 0
		case slot&(0xffff<<48) == tag:
			return slot, at + 1
		}
	}
}

// add adds a reference; the same key may be added more than once.
func (x *index) add(prefix, reference uint64) {
	at, tag := x.place(prefix)
	mask := uint64(len(x.slots) - 1)
	for x.slots[at&mask] != 0 {
		at++
	}
	x.slots[at&mask] = tag | reference
	x.used++
}

// room makes the table ready for n more. prefix returns that of a reference.
func (x *index) room(n int, prefix func(slot uint64) uint64) {
	if 2*(x.used+n) <= len(x.slots) {
		return
	}
	size := max(1<<10, 1<<bits.Len(uint(2*(x.used+n)-1)))
	old := x.slots
	*x = index{slots: make([]uint64, size), seed: rand.Uint64() | 1}
	for _, slot := range old {
		if slot != 0 {
			x.add(prefix(slot), slot&(1<<48-1))
		}
	}
}
