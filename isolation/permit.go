// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// PermitError says why an override, an approval or a clear does not hold. It matches [ErrPermit] and what caused it.
type PermitError struct {
	Kind     string // "override", "approval" or "clear"
	Path     string // where it was loaded from; "" if it was not
	Problems []error
}

// Error lists the problems, one on a line.
func (e *PermitError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s %q", ErrPermit, e.Kind, e.Path)
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "\n  %v", p)
	}
	return b.String()
}

// Unwrap returns ErrPermit and the problems.
func (e *PermitError) Unwrap() []error { return append([]error{ErrPermit}, e.Problems...) }

// permitError is nil if there are no problems.
func permitError(kind, path string, ps []error) error {
	if len(ps) == 0 {
		return nil
	}
	return &PermitError{Kind: kind, Path: path, Problems: ps}
}

// LoadOverride reads an override from a file. See [LoadApproval] for what is demanded of it.
func LoadOverride(path string) (*Override, error) {
	var o Override
	origin, err := load("override", path, &o)
	if err != nil {
		return nil, err
	}
	o.origin = origin
	return &o, nil
}

// LoadApproval reads an approval from a file of at most 64 KiB that the caller cannot write, nor any directory above
// it: they belong to another user, and the kernel refuses the caller write access to each. Root is the exception, since
// nothing can be kept from it: for root it is enough that nobody else can write, and every use is recorded as such.
//
//	{
//		"approver": "A. Person",
//		"reason": "looked at the generator and at the log of the last run",
//		"modelHash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
//		"created": "2026-05-04T11:00:00Z",
//		"expires": "2026-05-04T19:00:00Z",
//		"runID": "run-7"
//	}
//
// The path is absolute and free of links. The file holds the canonical JSON of the object, white space aside: every
// field, in the order and spelling in which encoding/json writes it, times in UTC. The error is a [*PermitError] and
// shows that text where the file differs.
func LoadApproval(path string) (*Approval, error) {
	var a Approval
	origin, err := load("approval", path, &a)
	if err != nil {
		return nil, err
	}
	a.origin = origin
	return &a, nil
}

// LoadClear reads a clear from a file. See [LoadApproval] for what is demanded of it.
func LoadClear(path string) (*Clear, error) {
	var c Clear
	origin, err := load("clear", path, &c)
	if err != nil {
		return nil, err
	}
	c.origin = origin
	return &c, nil
}

// maxPermitFile is many times what such an object needs.
const maxPermitFile = 64 << 10

// origin is where an object was loaded from. An object without one was made by the program that it is to bind.
type origin struct {
	path   string
	digest string // SHA-256 of the canonical form, hexadecimal
	byRoot bool   // the caller runs as root, and could have written it
}

func load(kind, path string, into any) (origin, error) {
	data, byRoot, err := readOthers(path)
	if err == nil {
		err = decodeCanonical(data, into)
	}
	if err != nil {
		return origin{}, permitError(kind, path, []error{err})
	}
	return origin{path: path, digest: digestOf(into), byRoot: byRoot}, nil
}

func digestOf(permit any) string {
	sum := sha256.Sum256(canonicalJSON(permit))
	return hex.EncodeToString(sum[:])
}

// decodeCanonical accepts only what encodes to the same text again. That leaves no room for unknown, repeated, missing
// or differently spelt fields, of which encoding/json would take one and a reader perhaps another.
func decodeCanonical(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("not the JSON of such an object: %w", err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	want := canonicalJSON(into)
	escaped, err := json.Marshal(into) // the same text, with escapes for HTML, as many programs write it
	if err != nil || !bytes.Equal(compact.Bytes(), want) && !bytes.Equal(compact.Bytes(), escaped) {
		return fmt.Errorf("not in the canonical form; what was understood is written as %s", want)
	}
	return nil
}

var errNotLoaded = errors.New("it was not loaded from a file; load one that the loop cannot change")

// common demands what every permit must have.
func (ps *problems) common(permit any, from origin, kind, reason, approver, runID string, in settleInput) {
	if from.digest == "" {
		*ps = append(*ps, errNotLoaded)
	}
	ps.require(from.digest == "" || from.digest == digestOf(permit), "it was changed after it was loaded")
	ps.require(in.tree == "" || !insideTree(in.tree, from.path), "%q is inside the tree that variants change", from.path)
	ps.require(readable(reason) >= minReason, "the reason has fewer than %d characters", minReason)
	ps.require(readable(approver) > 0, "nobody is named as approver")
	ps.require(runID != "" && runID == in.runID, "the %s is for run %q, and this one is %q", kind, runID, in.runID)
}

// times demands a life of at most a day, around now.
func (ps *problems) times(created, expires, now time.Time) {
	life := expires.Sub(created)
	ps.require(life > 0 && life <= maxPermit && !created.IsZero(), "it is valid for %v; at most %v", life, maxPermit)
	ps.require(!created.After(now), "it is not valid before %s", created.Format(time.RFC3339))
	ps.require(expires.After(now), "it expired at %s; ask for another one", expires.Format(time.RFC3339))
}

// readable counts the characters that a reader sees: 20 spaces, or a row of marks that show nothing, are no reason.
func readable(s string) (n int) {
	if !utf8.ValidString(s) {
		return 0
	}
	for _, r := range s {
		if unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.Mn, r) {
			n++
		}
	}
	return n
}

// insideTree reports whether a path is a directory or below it. Both are free of links.
func insideTree(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err != nil || rel == "." || filepath.IsLocal(rel)
}
