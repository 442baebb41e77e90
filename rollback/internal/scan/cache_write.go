// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"

	"github.com/evoseal/containment/rollback/internal/object"
)

// cacheState is what a result needs to write the next cache.
type cacheState struct {
	fingerprint [32]byte
	start       stamp
	turn        uint64
	old         []byte // header of the cache that was used, if it is as good as a new one
	sink        Sink
	chunks      map[*Node][]byte // encoded chunk lists of large files
}

// never is a number of nanoseconds that no time has: the record of a file that has to be read again.
const never = 1<<32 - 1

// fingerprint binds a cache to the directory and to the options that decide what is captured.
func fingerprint(o *Options, dev, ino uint64) [32]byte {
	b := make([]byte, 0, 64)
	b = binary.LittleEndian.AppendUint64(b, dev)
	b = binary.LittleEndian.AppendUint64(b, ino)
	b = append(b, bit(o.Owner), bit(o.Xattrs))
	sum := o.Exclude.sum()
	return sha256.Sum256(append(b, sum[:]...))
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// CacheFile returns the bytes of the cache that the next scan can use. It must be called when everything that the scan
// added to the sink is there for good. Where the tree is as the cache had it, they are a
// new header only, to be written over the old one: it says which files are read again next time. Nil: no cache is
// possible.
func (r *Result) CacheFile() (data []byte, whole bool) {
	if r.cache == nil {
		return nil, false
	}
	if r.cache.old != nil {
		return r.cache.header(nil, 0), false
	}
	size := headerLen + r.Root.cacheSize()
	if size > maxCacheLen {
		return nil, false
	}
	w := cacheWriter{data: make([]byte, headerLen, size), state: r.cache}
	at := w.record(r.Root)
	w.block(r.Root, at)
	return r.cache.header(w.data, r.Files+r.Dirs+r.Links), true
}

// header fills in the first bytes of data. Without data it is one that keeps the sums of the old header.
func (s *cacheState) header(data []byte, entries int) []byte {
	if data == nil {
		data = append([]byte(nil), s.old...)
	} else {
		copy(data, cacheMagic)
		copy(data[hFingerprint:], s.fingerprint[:])
		le.PutUint64(data[hSec:], uint64(s.start.sec))
		le.PutUint32(data[hNsec:], s.start.nsec)
		le.PutUint64(data[hEntries:], uint64(entries))
		body := data[headerLen:]
		le.PutUint64(data[hBody:], uint64(len(body)))
		le.PutUint32(data[hBodySum:], crc32.Checksum(body, castagnoli))
	}
	sum := generation(s.sink)
	copy(data[hGeneration:], sum[:])
	le.PutUint64(data[hTurn:], s.turn)
	le.PutUint32(data[hSum:], crc32.Checksum(data[:hSum], castagnoli))
	return data
}

type cacheWriter struct {
	data  []byte
	state *cacheState
}

// block writes the records of a directory whose own record is at off, and then the blocks below.
func (w *cacheWriter) block(dir *Node, off int) {
	le.PutUint32(w.data[off+rHash:], uint32(len(w.data)))
	w.data = le.AppendUint32(w.data, uint32(len(dir.Children)))
	w.data = append(w.data, dir.Data.Hash[:]...)
	w.data = append(w.data, dir.Content[:]...)
	first := len(w.data)
	for _, n := range dir.Children {
		w.record(n)
	}
	at := first
	for _, n := range dir.Children {
		size := int(le.Uint32(w.data[at+rLen:]))
		if n.Kind == object.Dir {
			w.block(n, at)
		}
		at += size
	}
}

func (w *cacheWriter) record(n *Node) int {
	at := len(w.data)
	chunks := w.state.chunks[n]
	w.data = append(w.data, make([]byte, recordLen)...)
	w.data = append(w.data, n.Name...)
	w.data = append(w.data, n.Target...)
	w.data = append(w.data, n.Group...)
	mark := len(w.data)
	w.data = appendXattrs(w.data, n.Xattrs)
	attributes := len(w.data) - mark
	w.data = append(w.data, chunks...)

	r := w.data[at:]
	le.PutUint32(r[rLen:], uint32(len(r)))
	r[rKind], r[rType] = byte(n.Kind), byte(n.Data.Type)
	le.PutUint16(r[rName:], uint16(len(n.Name)))
	le.PutUint32(r[rMode:], n.Mode)
	le.PutUint32(r[rUID:], n.Stat.UID)
	le.PutUint32(r[rGID:], n.Stat.GID)
	le.PutUint32(r[rNsec:], n.Nsec)
	le.PutUint64(r[rSec:], uint64(n.Sec))
	le.PutUint64(r[rCtime:], uint64(n.Stat.CtimeSec))
	le.PutUint32(r[rCtimeNsec:], n.Stat.CtimeNsec)
	if n.racy {
		le.PutUint32(r[rCtimeNsec:], never)
	}
	le.PutUint32(r[rNlink:], n.Stat.Nlink)
	le.PutUint64(r[rIno:], n.Stat.Ino)
	le.PutUint64(r[rSize:], uint64(n.Size))
	if n.Kind == object.File {
		copy(r[rHash:], n.Data.Hash[:])
	}
	le.PutUint32(r[rTarget:], uint32(len(n.Target)))
	le.PutUint32(r[rGroup:], uint32(len(n.Group)))
	le.PutUint32(r[rXattrs:], uint32(attributes))
	le.PutUint32(r[rChunks:], uint32(len(chunks)))
	return at
}

// cacheSize is the number of bytes below the node, its own record included, without attributes and chunk lists.
func (n *Node) cacheSize() int {
	size := recordLen + len(n.Name) + len(n.Target) + len(n.Group)
	if n.Kind == object.Dir {
		size += blockLen
	}
	for _, c := range n.Children {
		size += c.cacheSize()
	}
	return size
}

func appendXattrs(b []byte, list []object.Xattr) []byte {
	for _, x := range list {
		b = le.AppendUint32(b, uint32(len(x.Name)))
		b = append(b, x.Name...)
		b = le.AppendUint32(b, uint32(len(x.Value)))
		b = append(b, x.Value...)
	}
	return b
}

// parseXattrs returns false for what appendXattrs cannot have written.
func parseXattrs(b []byte) (list []object.Xattr, ok bool) {
	field := func() string {
		if len(b) < 4 || uint64(len(b)-4) < uint64(le.Uint32(b)) {
			ok = false
			return ""
		}
		s := string(b[4:][:le.Uint32(b)])
		b = b[4+len(s):]
		return s
	}
	ok = true
	for len(b) > 0 && ok {
		x := object.Xattr{Name: field()}
		x.Value = field()
		list = append(list, x)
	}
	return list, ok
}

// generational is a sink that can name its state.
type generational interface {
	// Generation is the same only if everything is present that was present when it was so before.
	Generation() (sum object.Hash, ok bool)
}

// generation returns zero if the sink cannot say.
func generation(s Sink) object.Hash {
	if g, ok := s.(generational); ok {
		if sum, ok := g.Generation(); ok {
			return sum
		}
	}
	return object.Hash{}
}
