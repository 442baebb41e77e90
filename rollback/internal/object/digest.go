// SPDX-License-Identifier: Apache-2.0

package object

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// String returns 64 lower-case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// String names the object for messages.
func (k Key) String() string { return k.Type.String() + " " + k.Hash.String() }

func (t Type) String() string {
	switch t {
	case Blob:
		return "blob"
	case Chunks:
		return "chunk list"
	case Tree:
		return "tree"
	case Skipped:
		return "skip list"
	}
	return "unknown object"
}

// Sum names the object of this type with these bytes.
func Sum(t Type, raw []byte) Key { return Key{Type: t, Hash: sha256.Sum256(raw)} }

// ContentDigest sums up a directory by the names, kinds, execute bits, bytes and targets of its entries and of all
// below. Permissions of directories are no content, nor are times, owners, and which files are one by hard links.
func ContentDigest(entries []Entry) Hash {
	h := sha256.New()
	b := append(make([]byte, 0, 4096), "rbD1"...)
	for i := range entries {
		e := &entries[i]
		b = append(b, byte(e.Kind))
		b = appendShort(b, e.Name)
		switch e.Kind {
		case File:
			b = append(b, byte(e.Mode&0o111), byte(e.Data.Type))
			b = binary.BigEndian.AppendUint64(b, uint64(e.Size))
			b = append(b, e.Data.Hash[:]...)
		case Dir:
			b = append(b, e.Content[:]...)
		case Link:
			b = appendLong(b, e.Target)
		}
		if len(b) > 3072 {
			_, _ = h.Write(b) // a hash returns no error
			b = b[:0]
		}
	}
	_, _ = h.Write(b)
	return Hash(h.Sum(nil))
}

// RootDigest sums up a whole tree with everything that is captured. The root is an entry of kind Dir without a name.
func RootDigest(root Entry) Hash {
	root.Name = ""
	return sha256.Sum256(appendEntry([]byte("rbR1"), &root))
}
