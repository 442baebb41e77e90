// SPDX-License-Identifier: Apache-2.0

package object

// Hash is the SHA-256 of an object's raw bytes.
type Hash [32]byte

// Type of an object. An object is known by type and hash, so that bytes of a file never pass as a directory.
type Type uint8

const (
	Blob    Type = 1 // a whole file, up to MaxBlob
	Chunks  Type = 2 // the list of a larger file's chunks, which are Blobs, and of its holes
	Tree    Type = 3 // a directory
	Skipped Type = 4 // what a checkpoint left out
)

// Key names an object.
type Key struct {
	Type Type
	Hash Hash
}

const (
	MaxBlob  = 16 << 20 // a larger file is stored in chunks
	ChunkLen = 8 << 20
)

// Kind of an entry of a directory.
type Kind uint8

const (
	File Kind = 1
	Dir  Kind = 2
	Link Kind = 3
)

// Entry is what a checkpoint knows of one name in a directory.
type Entry struct {
	Name     string // raw bytes: anything but "/" and NUL
	Kind     Kind
	Mode     uint32 // st_mode & 07777
	UID, GID uint32 // zero unless owners are captured, or the file has set-id bits
	Sec      int64  // modification time
	Nsec     uint32
	Size     int64   // File: its bytes
	Data     Key     // File: Blob or Chunks; Dir: Tree; Link: zero
	Content  Hash    // Dir: digest of the names, kinds, execute bits, bytes and targets below; else zero
	Target   string  // Link
	Group    string  // File with several names in the tree: the first of them in byte order, from the root; else empty
	Xattrs   []Xattr // sorted by name
}

// Xattr is an extended attribute.
type Xattr struct{ Name, Value string }
