// SPDX-License-Identifier: Apache-2.0

package allowlist

import "strings"

// protectTrie holds protect patterns in one form. It is asked about paths in the same form.
type protectTrie struct {
	anyDepth node // patterns of one component
	anchored node // the others
	filled   bool
}

func (t *protectTrie) add(alts [][]string, rule int) {
	for _, components := range alts {
		t.filled = true
		if len(components) == 1 {
			t.anyDepth.add(components, rule)
		} else {
			t.anchored.add(components, rule)
		}
	}
}

func (t *protectTrie) empty() bool { return !t.filled }

// match returns the lowest of best and the rules that protect a path, where -1 means none.
func (t *protectTrie) match(path string, best int) int {
	best = t.matchNames(path, best)
	t.anchored.walk(path, func(nodes []*node, last bool) {
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
func (t *protectTrie) matchBelow(path string, best int) int {
	best = t.matchNames(path, best)
	t.anchored.walk(path, func(nodes []*node, _ bool) {
		for _, n := range nodes {
			best = lower(best, n.rules)
		}
	})
	return best
}

// matchNames asks the patterns that hold at any depth.
func (t *protectTrie) matchNames(path string, best int) int {
	var buf [8]*node
	for component := range strings.SplitSeq(path, "/") {
		for _, n := range t.anyDepth.next(component, buf[:0]) {
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
