// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/hashicorp/go-multierror"
)

// Matcher decides which entries are excluded. A pattern without a slash holds for names at any depth, any other for the
// path from the root. It is asked about every entry of a tree, so patterns that are plain words cost one look-up in a
// map however many they are, and a path is put together only for those that need one. A nil Matcher excludes nothing.
type Matcher struct {
	patterns []string
	names    map[string]bool     // whole names
	suffixes []string            // "*.pyc"
	globs    []string            // other patterns for names
	paths    map[string][]string // whole paths, by their last name
	trees    []string            // patterns for paths
}

const meta = `*?[]{}\`

// NewMatcher compiles doublestar patterns. What can never match anything is refused, because its author means something
// else by it; all faults are named.
func NewMatcher(patterns []string) (*Matcher, error) {
	m := &Matcher{patterns: slices.Clone(patterns), names: map[string]bool{}, paths: map[string][]string{}}
	var all *multierror.Error
	for _, p := range patterns {
		if err := checkPattern(p); err != nil {
			all = multierror.Append(all, fmt.Errorf("pattern %q %w", p, err))
			continue
		}
		m.add(p)
	}
	if err := all.ErrorOrNil(); err != nil {
		return nil, err
	}
	return m, nil
}

func checkPattern(p string) error {
	switch {
	case p == "":
		return errors.New("is empty")
	case strings.HasPrefix(p, "/"):
		return errors.New("begins with a slash: patterns are relative to the root already")
	case strings.HasSuffix(p, "/"):
		return errors.New("ends in a slash: leave it out, a directory is excluded with all below")
	case strings.Contains(p, "\x00"):
		return errors.New("has a NUL, which no name can have")
	case !doublestar.ValidatePattern(p):
		return errors.New("is not well-formed")
	}
	for name := range strings.SplitSeq(p, "/") {
		if name == "" || name == "." || name == ".." {
			return fmt.Errorf("has the component %q, which no entry can have", name)
		}
	}
	return nil
}

func (m *Matcher) add(p string) {
	plain := !strings.ContainsAny(p, meta)
	deep := strings.Contains(p, "/")
	switch {
	case plain && deep:
		last := p[strings.LastIndexByte(p, '/')+1:]
		m.paths[last] = append(m.paths[last], p)
	case plain:
		m.names[p] = true
	case deep:
		m.trees = append(m.trees, p)
	case p[0] == '*' && !strings.ContainsAny(p[1:], meta):
		m.suffixes = append(m.suffixes, p[1:])
	default:
		m.globs = append(m.globs, p)
	}
}

// Patterns returns what the matcher was made of.
func (m *Matcher) Patterns() []string {
	if m == nil {
		return nil
	}
	return slices.Clone(m.patterns)
}

// Match reports whether the entry is excluded by itself; whoever asks has asked about the directories above it before.
func (m *Matcher) Match(path string) bool {
	return m.match(path[strings.LastIndexByte(path, '/')+1:], func() string { return path })
}

// match is Match with a path that is put together only if a pattern needs it.
func (m *Matcher) match(name string, path func() string) bool {
	if m == nil {
		return false
	}
	if len(m.names) > 0 && m.names[name] {
		return true
	}
	for _, s := range m.suffixes {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	for _, g := range m.globs {
		if doublestar.MatchUnvalidated(g, name) {
			return true
		}
	}
	if len(m.trees) == 0 && (len(m.paths) == 0 || m.paths[name] == nil) {
		return false
	}
	whole := path()
	return slices.Contains(m.paths[name], whole) ||
		slices.ContainsFunc(m.trees, func(p string) bool { return doublestar.MatchUnvalidated(p, whole) })
}

// sum is the same for equal lists of patterns.
func (m *Matcher) sum() [32]byte {
	var b []byte
	for _, p := range m.Patterns() {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	return sha256.Sum256(b)
}
