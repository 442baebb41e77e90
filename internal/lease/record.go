// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	idPrefix  = "containment-"
	idLetters = "abcdefghijklmnopqrstuvwxyz234567"
	idLength  = 26 // letters that rand.Text returns
	newSuffix = ".new"
)

// Record names what a run makes. Every name in it may or may not exist at any instant. The zero value names nothing.
type Record struct {
	ID    string // from NewID; also the name of the file and the stem of all other names of the run
	Label string `json:",omitempty"` // the caller's mark, for people

	// PID, StartTime (clock ticks after boot, field 22 of /proc/PID/stat) and BootID say which process held the lease.
	// Acquire sets them. They are there for people and for tests; whether the holder lives is what the lock says.
	PID       int
	StartTime uint64
	BootID    string

	Scratch []string `json:",omitempty"` // absolute paths of directories
	Mounts  []string `json:",omitempty"` // absolute paths of mount points, in the order in which they are made
	Cgroups []string `json:",omitempty"` // absolute paths of cgroup directories
	// Artifacts is the absolute path of a directory in which the run may have incomplete files; "" is none.
	Artifacts string `json:",omitempty"`
	// UID is the user id that is reserved for the run; 0 is none, so that a forgotten field never names root.
	UID uint32 `json:",omitempty"`
}

// NewID returns a name that nobody has had before: "containment-" and 26 random letters and digits.
func NewID() string { return idPrefix + strings.ToLower(rand.Text()) }

func validID(id string) bool {
	text, ok := strings.CutPrefix(id, idPrefix)
	return ok && len(text) == idLength && strings.Trim(text, idLetters) == ""
}

// maxRecord is the largest record in bytes.
const maxRecord = 1 << 20

// encode returns the record as one line; decode demands the line's end, so that a cut-off record is never accepted.
func encode(rec Record) ([]byte, error) {
	if err := rec.check(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(rec)
	if err != nil {
		return nil, err
	}
	if len(data) >= maxRecord {
		return nil, fmt.Errorf("a record may have at most %d bytes", maxRecord)
	}
	return append(data, '\n'), nil
}

// decode reads the record of the lease id. A field that this version does not know may name something that this version
// would not clean, so it is an error.
func decode(id string, data []byte) (Record, error) {
	line, rest, ok := bytes.Cut(data, []byte("\n"))
	if !ok || len(rest) > 0 {
		return Record{}, errors.New("is not one whole line")
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	var rec Record
	if err := decoder.Decode(&rec); err != nil {
		return Record{}, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return Record{}, errors.New("has something behind the record")
	}
	if rec.ID != id {
		return Record{}, fmt.Errorf("names itself %q", rec.ID)
	}
	return rec, rec.check()
}

// check demands names that mean the same to the process that cleans up: whole, whatever its working directory is, and
// kept by JSON, which replaces bytes that are not UTF-8.
func (r Record) check() error {
	if !validID(r.ID) {
		return fmt.Errorf("id %q: must come from NewID", r.ID)
	}
	if !utf8.ValidString(r.Label) {
		return fmt.Errorf("label %q: must be UTF-8", r.Label)
	}
	paths := slices.Concat(r.Scratch, r.Mounts, r.Cgroups)
	if r.Artifacts != "" {
		paths = append(paths, r.Artifacts)
	}
	for _, p := range paths {
		if !filepath.IsAbs(p) || filepath.Clean(p) != p || filepath.Dir(p) == p || !utf8.ValidString(p) {
			return fmt.Errorf("path %q: must be absolute, clean, UTF-8, and not the root", p)
		}
	}
	return nil
}
