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
	rules    []*protectRule // in order of rank: the lowest number decides
	anyDepth *node          // patterns of one component
	anchored *node          // the others
	byText   map[string]int // the lowest rule with these components, joined
}

func compileProtection(rules []*protectRule) *protectSet {
	p := &protectSet{rules: slices.Clone(rules), anyDepth: &node{}, anchored: &node{}, byText: map[string]int{}}
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
			if len(components) == 1 {
				p.anyDepth.add(components, i)
			} else {
				p.anchored.add(components, i)
			}
		}
	}
	return p
}

// match returns the number of the rule that decides about a path, given as a fold key, or -1.
func (p *protectSet) match(key string) int {
	best := p.matchNames(key)
	p.anchored.walk(key, func(nodes []*node, last bool) {
		for _, n := range nodes {
			best = lower(best, n.rules) // the entry, or something above it
			if last {
				best = lower(best, n.heads) // a directory on the way to a protected name
			}
		}
	})
	return best
}

// matchBelow is match for what lies below the path: a directory on the way to a protected name is free below.
func (p *protectSet) matchBelow(key string) int {
	best := p.matchNames(key)
	p.anchored.walk(key, func(nodes []*node, _ bool) {
		for _, n := range nodes {
			best = lower(best, n.rules)
		}
	})
	return best
}

// matchNames asks the patterns that hold at any depth.
func (p *protectSet) matchNames(key string) int {
	best := -1
	var buf [8]*node
	for component := range strings.SplitSeq(key, "/") {
		for _, n := range p.anyDepth.next(component, buf[:0]) {
			best = lower(best, n.rules)
		}
	}
	return best
}

// lower is the lowest of the rules and best, where -1 means none.
func lower(best int, rules []int) int {
	for _, r := range rules {
		if best < 0 || r < best {
			best = r
		}
	}
	return best
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
