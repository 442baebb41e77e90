// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"slices"
	"strings"
)

// node is a node of a trie of patterns, keyed by component. The rules that end in it are numbers, whose meaning is the
// owner's.
type node struct {
	literal map[string]*node
	globs   *globSet
	deep    *node // what follows a "**" that stands here
	loop    bool  // this is such a node: it consumes any number of components
	rules   []int // patterns that end here
	heads   []int // patterns whose literal head passes here
}

// add puts a pattern into the trie.
func (n *node) add(components []string, rule int) {
	head := literalHead(components)
	for i, c := range components {
		n = n.child(c)
		if i < head && i < len(components)-1 {
			n.heads = append(n.heads, rule)
		}
	}
	n.rules = append(n.rules, rule)
}

// child returns the node for the next component of a pattern, and makes it if need be.
func (n *node) child(c string) *node {
	switch {
	case c == "**":
		if n.deep == nil {
			n.deep = &node{loop: true}
		}
		return n.deep
	case hasWildcard(c):
		if n.globs == nil {
			n.globs = &globSet{}
		}
		return n.globs.at(c)
	}
	if n.literal == nil {
		n.literal = map[string]*node{}
	}
	if n.literal[c] == nil {
		n.literal[c] = &node{}
	}
	return n.literal[c]
}

// next appends the nodes that a component of a path leads to.
func (n *node) next(c string, to []*node) []*node {
	if m := n.literal[c]; m != nil {
		to = append(to, m)
	}
	if n.globs != nil {
		to = n.globs.match(c, to)
	}
	return to
}

// walk calls visit with the nodes that each component leads to. It follows all ways at once and each node once per
// component: with several "**" a search that goes back would take a time that an attacker chooses by the path.
func (n *node) walk(path string, visit func(nodes []*node, last bool)) {
	var a, b [8]*node
	states, spare := closure(append(a[:0], n)), b[:0]
	for len(states) > 0 {
		component, rest, more := strings.Cut(path, "/")
		spare = spare[:0]
		for _, s := range states {
			if s.loop {
				spare = append(spare, s)
			}
			spare = s.next(component, spare)
		}
		states, spare = closure(spare), states
		visit(states, !more)
		if !more {
			return
		}
		path = rest
	}
}

// closure adds the nodes that a "**" reaches without a component, and drops repetitions.
func closure(states []*node) []*node {
	kept := states[:0]
	for i := 0; i < len(states); i++ {
		s := states[i]
		if slices.Contains(kept, s) {
			continue
		}
		kept = append(kept, s)
		if s.deep != nil {
			states = append(states, s.deep)
			kept = states[:len(kept)]
		}
	}
	return kept
}
