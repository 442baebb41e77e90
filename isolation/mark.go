// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// mark is what the log keeps of a baseline. The accepted tree was written by a variant: one that reports fewer tests
// while it is measured at a later Open would lower what every variant after it is judged by. A mark is never lowered; an
// operator who wants less begins another run.
type mark struct {
	Passed int    `json:"passed"`          // how many tests
	Hash   string `json:"hash"`            // SHA-256 of their names, hexadecimal
	Names  []byte `json:"names,omitempty"` // DEFLATE; empty if they take more than maxMark
}

// A record of the log has 64 KiB at most, and Names grows by a third when it is written as base64.
const (
	maxMark      = 32 << 10 // bytes, compressed
	maxMarkNames = 1 << 20  // bytes, as they are; more are not compressed
)

// nameList returns the names sorted and quoted, one on a line, so that any byte in a name stays what it is.
func nameList(names []string) ([]string, string) {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	slices.Sort(quoted)
	quoted = slices.Compact(quoted)
	return quoted, strings.Join(quoted, "\n")
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func markOf(b *Baseline) *mark {
	names, text := nameList(b.Passed)
	m := &mark{Passed: len(names), Hash: hashOf(text)}
	if len(text) > maxMarkNames {
		return m
	}
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.DefaultCompression)
	if err != nil {
		return m // the number and the hash are there
	}
	_, _ = io.WriteString(w, text) // a bytes.Buffer takes everything
	if w.Close() == nil && out.Len() <= maxMark {
		m.Names = out.Bytes()
	}
	return m
}

// holds says what a baseline lacks of the mark; nil: nothing. A nil mark asks for nothing. Where the log has no names,
// more tests are enough, and as many must be the same ones. The error is a *RejectError, or matches ErrLog.
func (m *mark) holds(b *Baseline) error {
	if m == nil {
		return nil
	}
	r := newReport()
	names, text := nameList(b.Passed)
	if len(names) < m.Passed {
		r.find(FindingTooFew, "", "%d test(s) pass; %d did before", len(names), m.Passed)
	}
	before, err := m.names()
	if err != nil {
		return err
	}
	for _, name := range before {
		if _, ok := slices.BinarySearch(names, name); !ok {
			r.find(FindingVanished, name, "it passed before and does not now")
		}
	}
	if len(before) == 0 && len(names) == m.Passed && hashOf(text) != m.Hash {
		r.find(FindingVanished, "", "as many tests pass as before, and not the same ones")
	}
	return r.err()
}

// names returns the quoted names; none if the log has not kept them.
func (m *mark) names() ([]string, error) {
	if len(m.Names) == 0 {
		return nil, nil
	}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(m.Names)), maxMarkNames+1))
	if err != nil || hashOf(string(text)) != m.Hash {
		return nil, fmt.Errorf("%w: the names of tests do not have the hash %.12s… (%v)", ErrLog, m.Hash, err)
	}
	if len(text) == 0 {
		return nil, nil
	}
	return strings.Split(string(text), "\n"), nil
}
