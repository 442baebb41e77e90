// SPDX-License-Identifier: Apache-2.0

package object

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A tree object is its magic and then one record for each entry, numbers in big-endian order:
//
//	kind 1, flags 1, mode 2, uid 4, gid 4, seconds 8, nanoseconds 4, name (2+n)
//	File: size 8, data type 1, data hash 32; Dir: data hash 32, content 32; Link: target (4+n)
//	flagGroup: group (4+n); flagXattrs: count 2, and for each name (2+n), value (4+n)
const treeMagic = "rbT1"

const (
	flagGroup  = 1
	flagXattrs = 2
)

// EncodeTree writes the entries of one directory, which are in strict byte order of their names. It does not check
// them; DecodeTree does.
func EncodeTree(entries []Entry) []byte {
	size := len(treeMagic)
	for i := range entries {
		e := &entries[i]
		size += 26 + 64 + len(e.Name) + len(e.Target) + len(e.Group)
	}
	b := append(make([]byte, 0, size), treeMagic...)
	for i := range entries {
		b = appendEntry(b, &entries[i])
	}
	return b
}

func appendEntry(b []byte, e *Entry) []byte {
	var flags byte
	if e.Group != "" {
		flags |= flagGroup
	}
	if len(e.Xattrs) > 0 {
		flags |= flagXattrs
	}
	be := binary.BigEndian
	b = append(b, byte(e.Kind), flags)
	b = be.AppendUint16(b, uint16(e.Mode))
	b = be.AppendUint32(b, e.UID)
	b = be.AppendUint32(b, e.GID)
	b = be.AppendUint64(b, uint64(e.Sec))
	b = be.AppendUint32(b, e.Nsec)
	b = appendShort(b, e.Name)
	switch e.Kind {
	case File:
		b = be.AppendUint64(b, uint64(e.Size))
		b = append(b, byte(e.Data.Type))
		b = append(b, e.Data.Hash[:]...)
	case Dir:
		b = append(b, e.Data.Hash[:]...)
		b = append(b, e.Content[:]...)
	case Link:
		b = appendLong(b, e.Target)
	}
	if flags&flagGroup != 0 {
		b = appendLong(b, e.Group)
	}
	if flags&flagXattrs != 0 {
		b = be.AppendUint16(b, uint16(len(e.Xattrs)))
		for _, x := range e.Xattrs {
			b = appendLong(appendShort(b, x.Name), x.Value)
		}
	}
	return b
}

func appendShort(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

func appendLong(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// DecodeTree reads what EncodeTree wrote and refuses everything else: whatever it accepts encodes to the same bytes.
func DecodeTree(data []byte) ([]Entry, error) {
	if len(data) < len(treeMagic) || string(data[:len(treeMagic)]) != treeMagic {
		return nil, errors.New("not a directory")
	}
	r := &reader{rest: string(data[len(treeMagic):])} // one copy that all names share
	entries := make([]Entry, 0, r.guess())
	for i := 0; r.rest != ""; i++ {
		e, err := r.entry()
		if err == nil {
			err = check(&e)
		}
		if err == nil && i > 0 && e.Name <= entries[i-1].Name {
			err = errors.New("is not after the one before it in byte order")
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d, %q: %w", i, e.Name, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}
