// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"cmp"
	"slices"
	"strings"
)

// Ranks order the protect rules. Of several that match a path, the first is named.
const (
	rankCore    = iota // default rules of class core
	rankProtect        // the operator's protect
	rankGate           // the operator's gate
	rankSoft           // the other default rules, which a release lifts
)

// protectRule is one rule before it is compiled.
type protectRule struct {
	pattern pattern
	rank    int
	rule    Rule
}

// protectSet is a compiled set of protect rules.
type protectSet struct {
	rules  []*protectRule // in order of rank: the lowest number decides
	folded protectTrie    // as fold keys
	plain  protectTrie    // folded rune by rune
	raw    protectTrie    // as written, of those with a negated class
	byText map[string]int // the lowest rule with these components as fold keys, joined
}

func compileProtection(rules []*protectRule) *protectSet {
	p := &protectSet{rules: slices.Clone(rules), byText: map[string]int{}}
	// The order in which rules were written must not show, not even in the rule that is named.
	slices.SortFunc(p.rules, func(a, b *protectRule) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.rule.Pattern, b.rule.Pattern),
			cmp.Compare(a.rule.Source, b.rule.Source))
	})
	for i, r := range p.rules {
		for _, components := range r.pattern.alts {
			text := strings.Join(components, "/")
			if _, known := p.byText[text]; !known {
				p.byText[text] = i
			}
		}
		p.folded.add(r.pattern.alts, i)
		p.plain.add(r.pattern.plain, i)
		p.raw.add(r.pattern.raw, i)
	}
	return p
}

// match returns the number of the rule that decides about a path, or -1. A pattern protects what it matches in any form:
// two spellings of one name must not be told apart, and a name that a reader would say is matched must not slip away
// because folding has made it longer or has put a slash into it.
func (p *protectSet) match(path string) int {
	best := p.folded.match(foldKey(path), -1)
	if !p.raw.empty() {
		best = p.raw.match(path, best)
	}
	if isASCII(path) {
		return best // all folds of the path are the same
	}
	best = p.folded.match(foldSeparately(path), best)
	return p.plain.match(foldRunes(path), best)
}

// guardRule is a core-protected path of one tree: literal, unlike a pattern.
type guardRule struct {
	key  string // fold key
	rule Rule
}

// covers reports whether the path with this fold key is the protected one, above it or below it.
func (g guardRule) covers(key string) bool {
	return key == g.key || strings.HasPrefix(key, g.key+"/") || strings.HasPrefix(g.key, key+"/")
}
