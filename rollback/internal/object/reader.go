// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"fmt"
)

var errShort = errors.New("the object ends too early")

// reader takes fields from the front. After the first that is missing it returns zeros, and short is set.
type reader struct {
	rest  string
	short bool
}

// guess is a capacity for the entries that cannot be much more than there are: each takes 58 bytes or more.
func (r *reader) guess() int { return len(r.rest) / 96 }

func (r *reader) bytes(n int) string {
	if n < 0 || n > len(r.rest) {
		r.rest, r.short = "", true
		return ""
	}
	field := r.rest[:n]
	r.rest = r.rest[n:]
	return field
}

func (r *reader) number(width int) (v uint64) {
	for _, c := range []byte(r.bytes(width)) {
		v = v<<8 | uint64(c)
	}
	return v
}

func (r *reader) short16() string { return r.bytes(int(r.number(2))) }
func (r *reader) long32() string  { return r.bytes(int(r.number(4))) }

func (r *reader) hash() (h Hash) {
	copy(h[:], r.bytes(len(h)))
	return h
}

// entry reads one record. What its fields say is judged by check.
func (r *reader) entry() (Entry, error) {
	kind, flags := Kind(r.number(1)), r.number(1)
	e := Entry{Kind: kind, Mode: uint32(r.number(2)), UID: uint32(r.number(4)), GID: uint32(r.number(4))}
	e.Sec, e.Nsec, e.Name = int64(r.number(8)), uint32(r.number(4)), r.short16()
	switch kind {
	case File:
		e.Size = int64(r.number(8))
		e.Data = Key{Type: Type(r.number(1)), Hash: r.hash()}
	case Dir:
		e.Data = Key{Type: Tree, Hash: r.hash()}
		e.Content = r.hash()
	case Link:
		e.Target = r.long32()
	default:
		return e, fmt.Errorf("kind %d is unknown", kind)
	}
	if flags&^(flagGroup|flagXattrs) != 0 {
		return e, fmt.Errorf("flags %#x are unknown", flags)
	}
	if flags&flagGroup != 0 {
		if e.Group = r.long32(); e.Group == "" {
			return e, errors.New("the group is empty")
		}
	}
	if flags&flagXattrs != 0 {
		if err := r.xattrs(&e); err != nil {
			return e, err
		}
	}
	if r.short {
		return e, errShort
	}
	return e, nil
}

func (r *reader) xattrs(e *Entry) error {
	n := int(r.number(2))
	if n == 0 || n > len(r.rest)/6 { // two lengths each
		return errors.New("the number of attributes is wrong")
	}
	e.Xattrs = make([]Xattr, n)
	for i := range e.Xattrs {
		e.Xattrs[i] = Xattr{Name: r.short16(), Value: r.long32()}
	}
	return checkXattrs(e.Xattrs)
}
