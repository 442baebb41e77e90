// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// globSet finds those of many single-component patterns with wildcards that match a name, in a time that hardly depends
// on their number: most such patterns are "*.ext", or start with some literal text.
type globSet struct {
	byExt    map[string]*node  // "*" and a literal that starts with a dot and has no other
	byPrefix map[string][]glob // by the literal text before the first wildcard
	lengths  []int             // the distinct lengths of those texts, ascending
	first    [4]uint64         // the set of their first bytes: most names need no look-up at all
	rest     []glob            // what starts with a wildcard and is no *.ext: few
}

type glob struct {
	pattern string
	needle  string // literal text that every match contains; looking for it is cheap
	to      *node
}

// needle is the literal text behind the first wildcard of a pattern that starts with one.
func needle(p string) string {
	if p[0] == '[' {
		return ""
	}
	rest := strings.TrimLeft(p, "*?")
	if i := strings.IndexAny(rest, "*?["); i >= 0 {
		return rest[:i]
	}
	return rest
}

// at returns the node that a pattern leads to, and makes it if need be.
func (s *globSet) at(p string) *node {
	if ext := p[1:]; p[0] == '*' && strings.LastIndexByte(ext, '.') == 0 && !hasWildcard(ext) {
		if s.byExt == nil {
			s.byExt = map[string]*node{}
		}
		if s.byExt[ext] == nil {
			s.byExt[ext] = &node{}
		}
		return s.byExt[ext]
	}
	prefix := p[:strings.IndexAny(p, "*?[")]
	list := s.rest
	if prefix != "" {
		list = s.byPrefix[prefix]
	}
	for _, g := range list {
		if g.pattern == p {
			return g.to
		}
	}
	g := glob{pattern: p, to: &node{}}
	if prefix == "" {
		g.needle = needle(p)
		s.rest = append(s.rest, g)
		return g.to
	}
	s.addPrefix(prefix, g)
	return g.to
}

func (s *globSet) addPrefix(prefix string, g glob) {
	if s.byPrefix == nil {
		s.byPrefix = map[string][]glob{}
	}
	s.byPrefix[prefix] = append(s.byPrefix[prefix], g)
	s.first[prefix[0]>>6] |= 1 << (prefix[0] & 63)
	if i, found := slices.BinarySearch(s.lengths, len(prefix)); !found {
		s.lengths = slices.Insert(s.lengths, i, len(prefix))
	}
}

// match appends the nodes of the patterns that match the name.
func (s *globSet) match(name string, to []*node) []*node {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		if n := s.byExt[name[i:]]; n != nil {
			to = append(to, n)
		}
	}
	if name == "" {
		return to // only a fold key can be empty, and no pattern is for that
	}
	if s.first[name[0]>>6]&(1<<(name[0]&63)) != 0 {
		for _, n := range s.lengths {
			if n > len(name) {
				break
			}
			to = matchGlobs(s.byPrefix[name[:n]], name, to)
		}
	}
	return matchGlobs(s.rest, name, to)
}

func matchGlobs(list []glob, name string, to []*node) []*node {
	for _, g := range list {
		if strings.Contains(name, g.needle) && doublestar.MatchUnvalidated(g.pattern, name) {
			to = append(to, g.to)
		}
	}
	return to
}
