// SPDX-License-Identifier: Apache-2.0

package allowlist

// Policy says what may change. It is immutable, and may be used by several goroutines at once. A nil or zero Policy
// allows nothing. Make one with Load, LoadFile or New.
type Policy struct {
	protect  *protectSet
	guard    []guardRule // core-protected paths of one tree
	released *node       // patterns that lift rules of rankSoft
	lifted   []release   // the same, as they were written
	layers   []layer     // each must grant: the policy's own surface, then one for each narrowing
	limit    Limits
	digest   string
	path     string // of the file that was read, absolute
	canon    canon  // what the digest is over
}

// layer is one surface, compiled.
type layer struct {
	trie    *node
	entries []surfaceEntry // by number in the trie
}

// surfaceEntry is one pattern of a surface rule.
type surfaceEntry struct {
	surface *surfaceRule
	pattern pattern
	rule    Rule
}

// limits are those of one set of edits.
func (p *Policy) limits() Limits {
	if p == nil {
		return Limits{}
	}
	return p.limit
}

// File is the absolute path of the policy file, or empty if the policy was not read by LoadFile.
func (p *Policy) File() string {
	if p == nil {
		return ""
	}
	return p.path
}

// Digest identifies the policy: "sha256:" and hexadecimal digits, over its rules and limits and the version of the list
// of default protected names. Neither the order of rules nor where they were read from matters.
func (p *Policy) Digest() string {
	if p == nil {
		return ""
	}
	return p.digest
}

// withCore returns the policy with additional core-protected paths. Rule.Pattern is a literal path from the root. The
// digest stays the same: it identifies the policy, not the tree.
func (p *Policy) withCore(extra []Rule) *Policy {
	if p == nil {
		return nil
	}
	q := *p
	q.guard = make([]guardRule, 0, len(p.guard)+len(extra))
	q.guard = append(q.guard, p.guard...)
	for _, r := range extra {
		q.guard = append(q.guard, guardRule{foldKey(r.Pattern), r})
	}
	return &q
}

// protects reports whether a name is protected, and by which rule: a match, what lies below one, and the directories
// on the way to an anchored one. Names on disk need not be canonical, so it takes any string.
func (p *Policy) protects(path string) (Rule, bool) {
	if p == nil || p.protect == nil {
		return Rule{}, true
	}
	key := foldKey(path)
	for _, g := range p.guard {
		if g.covers(key) {
			return g.rule, true
		}
	}
	number := p.protect.match(path)
	if number < 0 {
		return Rule{}, false
	}
	r := p.protect.rules[number]
	if r.rank == rankSoft && p.releases(path) {
		return Rule{}, false // what decides has the lowest rank, so nothing else matched
	}
	return r.rule, true
}

// releases reports whether a release matches the path, exactly.
func (p *Policy) releases(path string) bool {
	found := false
	p.released.walk(path, func(nodes []*node, last bool) {
		for _, n := range nodes {
			found = found || last && len(n.rules) > 0
		}
	})
	return found
}
