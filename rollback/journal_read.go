// SPDX-License-Identifier: Apache-2.0

package rollback

import "github.com/evoseal/containment/rollback/internal/object"

// journalReader takes fields from the front. After the first that is wrong it returns zeros, and bad is set.
type journalReader struct {
	rest string
	bad  bool
}

func (r *journalReader) bytes(n uint64) string {
	if n > uint64(len(r.rest)) {
		r.rest, r.bad = "", true
		return ""
	}
	field := r.rest[:n]
	r.rest = r.rest[n:]
	return field
}

func (r *journalReader) number(width uint64) (v uint64) {
	for _, c := range []byte(r.bytes(width)) {
		v = v<<8 | uint64(c)
	}
	return v
}

func (r *journalReader) text() string { return r.bytes(r.number(4)) }

func (r *journalReader) hash() (h [32]byte) {
	copy(h[:], r.bytes(32))
	return h
}

// count is a number of records that take at least min bytes each: nothing is allocated for more than there can be.
func (r *journalReader) count(least int) int {
	n := r.number(4)
	if n > uint64(len(r.rest)/least) {
		r.rest, r.bad = "", true
		return 0
	}
	return int(n)
}

func (r *journalReader) journal() *journal {
	j := &journal{Store: r.text(), TreeKey: r.text(), Staging: r.text(), To: r.hash(), Safety: r.hash()}
	j.Foreign, j.MTime = ForeignPolicy(r.number(1)), MTimePolicy(r.number(1))
	r.require(j.Foreign <= ForeignQuarantine && j.MTime <= MTimeTouch && isStaging(j.Staging))
	j.Changes = make([]Change, r.count(5))
	for i := range j.Changes {
		j.Changes[i] = Change{Path: r.path(), Op: Op(r.number(1))}
		r.require(j.Changes[i].Op >= Create && j.Changes[i].Op <= Attributes)
	}
	j.Opened = make([]opened, r.count(6))
	for i := range j.Opened {
		j.Opened[i] = opened{Path: r.path(), Mode: uint32(r.number(2)), Back: true}
		r.require(j.Opened[i].Mode <= 0o7777)
	}
	j.Slots = make([]slot, r.count(10))
	for i := range j.Slots {
		j.Slots[i] = slot{Path: r.path(), Was: r.known(), Now: r.known(), Foreign: r.text()}
	}
	return j
}

func (r *journalReader) require(ok bool) {
	if !ok {
		r.rest, r.bad = "", true
	}
}

// path is one that can be opened beneath a root and is no other way of writing it.
func (r *journalReader) path() string {
	p := r.text()
	r.require(p == "." || isLocal(p))
	return p
}

func (r *journalReader) known() known {
	k := known{Kind: object.Kind(r.number(1))}
	switch k.Kind {
	case 0:
	case object.File:
		k.Data = object.Key{Type: object.Type(r.number(1)), Hash: r.hash()}
		r.require(k.Data.Type == object.Blob || k.Data.Type == object.Chunks)
	case object.Link:
		k.Target = r.text()
		r.require(k.Target != "")
	default:
		r.require(false)
	}
	return k
}
