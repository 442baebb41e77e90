// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/hex"
	"fmt"
)

// The limits of a journal.
const (
	// MaxRecord is the largest line in bytes, with its frame of less than 150 bytes and its line end.
	MaxRecord = 64 << 10
	// MaxHeader is the largest first line in bytes: it carries the caller's header and snapshot.
	MaxHeader = 16 << 20
	// DefaultMaxSize is used where Config.MaxSize is 0.
	DefaultMaxSize = 64 << 20
)

// Config names a journal. It is data: it can be printed and compared.
type Config struct {
	Dir  string // must belong to the caller, and nobody else may write it; Create makes it, with mode 0700
	Name string // letters, digits and "-_.", not beginning with a dot, at most 200 bytes
	Kind string // what the payloads are, such as "runaway"; a file of another kind is ErrCorrupt
	ID   string // whose they are, such as a run id; a file of another id is ErrCorrupt
	// MaxSize is the largest file in bytes; 0 means DefaultMaxSize, less than MaxRecord is refused. Append fails with
	// ErrFull before it would be passed.
	MaxSize int64
	// FS stands in for the directory in tests; nil means the directory itself, opened by OpenDir.
	FS FS
}

// Head identifies a state of a journal: nobody can change what came before it without changing it.
type Head struct {
	Seq  uint64   // the number of the last record
	Hash [32]byte // SHA-256 of its line
}

// String returns the number, a colon and the hash in hexadecimal digits.
func (h Head) String() string { return fmt.Sprintf("%d:%s", h.Seq, hex.EncodeToString(h.Hash[:])) }

// Header is what a file begins with.
type Header struct {
	Seq  uint64 // 0, or the number at which the last Rotate began the file
	Kind string
	ID   string
	// Payload is what Create was given; it stays the same over all rotations.
	Payload []byte
	// Snapshot is what the last Rotate was given: the state of all records before Seq. Nil if there was none.
	Snapshot []byte
}

// Record is one line after the header.
type Record struct {
	Seq uint64
	// Payload is a JSON object as it was appended. It is valid until the next record is asked for. Nil if Cut > 0.
	Payload []byte
	// Cut > 0 is the note of Open that so many bytes of an unfinished record were dropped here. What it was is unknown,
	// so a caller that counts must assume the worst that one record can be.
	Cut  int64
	Hash [32]byte // of the line, for a comparison with a Head that was kept elsewhere
}

// Report is the result of Verify.
type Report struct {
	Header  Header
	Head    Head
	Records int   // lines after the header
	Size    int64 // bytes up to the end of the last valid line
	// Torn says that Dropped bytes of an unfinished record follow; Open would cut them off. A writer that is at work
	// looks the same.
	Torn    bool
	Dropped int64
}
