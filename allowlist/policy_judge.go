// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"cmp"
	"slices"
	"strings"
)

// judge decides about an edit as far as that is possible without a tree: path grammar, protected names, surface,
// operation, in this order. The scope is what must hold inside the file if the edit is allowed.
func (p *Policy) judge(op Op, path string) (Decision, scope) {
	d := Decision{Op: op, Path: path}
	if code, detail := checkPath(path); code != "" {
		d.Code, d.Detail = code, detail
		d.Hint = "write the path relative to the root, with single slashes and plain characters"
		return d, scope{}
	}
	if rule, yes := p.protects(path); yes {
		d.Code, d.Rule, d.Detail = ErrProtected, rule, rule.Reason
		d.Hint = "leave this name as it is, and reach the aim in another file"
		return d, scope{}
	}
	var matched [][]*surfaceEntry
	for i := range p.layers { // protects has denied everything for a nil Policy
		if entries := p.layers[i].match(path); len(entries) > 0 {
			matched = append(matched, entries)
		}
	}
	if len(matched) == 0 || len(matched) < len(p.layers) {
		d.Code, d.Detail = ErrOutsideSurface, "no rule makes this path mutable"
		d.Hint = "change only files of the surface that the task names; patterns are exact in case"
		return d, scope{}
	}
	return judgeOp(d, matched)
}

// judgeOp decides about the operation. Each layer must grant it.
func judgeOp(d Decision, matched [][]*surfaceEntry) (Decision, scope) {
	for _, entries := range matched {
		by, ok := grants(entries, d.Op)
		if !ok {
			d.Code, d.Rule, d.Detail = ErrOpNotAllowed, by.rule, allowedOps(matched)
			d.Hint = "use an operation that is allowed here, or another path"
			return d, scope{}
		}
		d.Rule = by.rule // the narrowest layer is the last one
	}
	d.Allowed = true
	return d, scopeOf(matched)
}

// grants finds the pattern that grants the operation, or one that stands against it.
func grants(entries []*surfaceEntry, op Op) (*surfaceEntry, bool) {
	if op < Create || op > Delete {
		return entries[0], false
	}
	if op != Modify {
		// A file in which only parts may change must neither appear nor vanish, whatever another rule says.
		for _, e := range entries {
			if e.surface.scoped() {
				return e, false
			}
		}
	}
	for _, e := range entries {
		if e.surface.ops[op] {
			return e, true
		}
	}
	return entries[0], false
}

// allowedOps says what may be done to a path that is matched.
func allowedOps(matched [][]*surfaceEntry) string {
	var names []string
	for _, op := range []Op{Modify, Create, Delete} {
		all := !slices.ContainsFunc(matched, func(entries []*surfaceEntry) bool {
			_, ok := grants(entries, op)
			return !ok
		})
		if all {
			names = append(names, op.String())
		}
	}
	if len(names) == 0 {
		return "no operation is allowed here"
	}
	return "allowed here: " + strings.Join(names, ", ")
}

// match returns the patterns that match a path, sorted by what they say, so that the order in a file does not show.
func (l *layer) match(path string) []*surfaceEntry {
	var found []*surfaceEntry
	l.trie.walk(path, func(nodes []*node, last bool) {
		if !last {
			return
		}
		for _, n := range nodes {
			for _, number := range n.rules {
				if e := &l.entries[number]; !slices.Contains(found, e) { // braces may repeat themselves
					found = append(found, e)
				}
			}
		}
	})
	slices.SortFunc(found, func(a, b *surfaceEntry) int {
		return cmp.Or(cmp.Compare(a.rule.Pattern, b.rule.Pattern), cmp.Compare(a.rule.Source, b.rule.Source))
	})
	return found
}

// scopeOf puts together what the matching rules say about the inside of a file: every region scope must hold;
// directives add up within a layer, and each layer must grant them.
func scopeOf(matched [][]*surfaceEntry) scope {
	var s scope
	for i, entries := range matched {
		var granted map[string]bool
		for _, e := range entries {
			for _, name := range e.surface.directives {
				if granted == nil {
					granted = map[string]bool{}
				}
				granted[name] = i == 0 || s.directives[name]
			}
			if m := e.surface.regions; m != nil {
				s.regions = append(s.regions, regions{begin: m.Begin, end: m.End, rule: e.rule})
			}
			if len(e.surface.goBodies) > 0 {
				s.goBodies = append(s.goBodies, goBodies{funcs: e.surface.goBodies, rule: e.rule})
			}
		}
		s.directives = granted
	}
	return s
}
