// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// surfaceRule is a rule of the surface that has been checked.
type surfaceRule struct {
	at         origin
	paths      []surfacePath
	ops        [Delete + 1]bool   // by Op
	opsAt      [Delete + 1]origin // where each is granted
	goBodies   []string
	regions    *Markers
	directives []string
}

type surfacePath struct {
	pattern  pattern
	spelling string // the same for all spellings of the pattern
	at       origin
}

// scoped reports whether the rule limits what may change inside a file.
func (r *surfaceRule) scoped() bool { return len(r.goBodies) > 0 || r.regions != nil }

// release is a release that has been checked.
type release struct {
	pattern pattern
	reason  string
	at      origin
}

// checker turns a spec into rules, and collects what is wrong on the way.
type checker struct {
	ps *problems
}

// surface checks every rule by itself.
func (c *checker) surface(s spec) []*surfaceRule {
	if len(s.surface) == 0 && !s.unread {
		c.ps.at(s.at.in("surface"), "there is no rule", "list what may change: at least one rule with paths and ops")
	}
	var rules []*surfaceRule
	for _, r := range s.surface {
		rule := &surfaceRule{at: r.at, directives: c.directives(r.directives)}
		for _, t := range c.distinct(r.paths, exactPattern) {
			if p, ok := c.pattern(t, exactPattern); ok {
				rule.paths = append(rule.paths, surfacePath{p, p.spelling(), t.at})
			}
		}
		if len(r.paths) == 0 && !r.unread {
			c.ps.at(r.at.in(".paths"), "there is no pattern", "write at least one, such as src/**")
		}
		c.ops(r, rule)
		c.scope(r, rule)
		rules = append(rules, rule)
	}
	return rules
}

func (c *checker) ops(r specRule, rule *surfaceRule) {
	if len(r.ops) == 0 && !r.unread {
		c.ps.at(r.at.in(".ops"), "no operation is granted", "write some of modify, create, delete")
	}
	for _, o := range r.ops {
		switch {
		case o.op < Create || o.op > Delete:
			c.ps.at(o.at, "this operation is not known", "write modify, create or delete; nothing else can be granted")
		case rule.ops[o.op]:
			c.ps.at(o.at, fmt.Sprintf("%v is granted twice", o.op), "keep one of them")
		default:
			rule.ops[o.op], rule.opsAt[o.op] = true, o.at
		}
	}
}

// pattern checks one pattern.
func (c *checker) pattern(t text, kind patternKind) (pattern, bool) {
	p, faults := parsePattern(t.s, kind)
	for _, f := range faults {
		c.ps.at(t.at, fmt.Sprintf("%+q: %s", t.s, f.rule), f.fix)
	}
	return p, len(faults) == 0
}

// protect checks the patterns of protect and gate.
func (c *checker) protect(s spec) []*protectRule {
	if !s.hasGate {
		c.ps.at(s.at.in("gate"), "gate is missing",
			"list the files that decide about a variant, or write gate: [] if none lies in the tree")
	}
	var rules []*protectRule
	for _, t := range c.distinct(slices.Concat(s.protect, s.gate), protectPattern) {
		p, ok := c.pattern(t, protectPattern)
		if !ok {
			continue
		}
		rank, reason := rankProtect, "the policy protects it"
		if slices.ContainsFunc(s.gate, func(g text) bool { return g.at == t.at }) {
			rank, reason = rankGate, "it decides about variants"
		}
		rules = append(rules, &protectRule{p, rank, Rule{Pattern: t.s, Source: t.at.source(), Reason: reason}})
	}
	return rules
}

// distinct drops patterns that occur before in the list, under any spelling, and reports them.
func (c *checker) distinct(list []text, kind patternKind) []text {
	seen := map[string]text{}
	return slices.DeleteFunc(slices.Clone(list), func(t text) bool {
		key := t.s
		if p, faults := parsePattern(t.s, kind); len(faults) == 0 {
			key = p.spelling()
		}
		first, twice := seen[key]
		if twice {
			c.ps.at(t.at, fmt.Sprintf("%+q never has an effect: it is the same as %+q (%s)", t.s, first.s, first.at.source()),
				"remove one of them")
			return true
		}
		seen[key] = t
		return false
	})
}

// spelling is the same for all spellings of one pattern. What is equal in one form may differ in another: [!A-Z] and
// [!a-z] have the same fold.
func (p pattern) spelling() string {
	var all []string
	for i, form := range [][][]string{p.alts, p.plain, p.raw} {
		alts := []string{fmt.Sprint(i)}
		for _, components := range form {
			if i == 0 || slices.ContainsFunc(components, hasWildcard) { // the fold says all about a literal name
				alts = append(alts, strings.Join(components, "/"))
			}
		}
		slices.Sort(alts[1:])
		all = append(all, slices.Compact(alts)...)
	}
	return strings.Join(all, "\n") // no pattern holds a newline
}

func (c *checker) releases(s spec) []release {
	patterns := make([]text, 0, len(s.release))
	var out []release
	for _, r := range s.release {
		switch {
		case r.pattern.bad:
		case r.pattern.s == "":
			c.ps.at(r.pattern.at, "pattern is missing", "write the pattern to release, or remove the entry")
		default:
			patterns = append(patterns, r.pattern)
		}
		switch {
		case r.reason.bad:
		case strings.TrimSpace(r.reason.s) == "" || !utf8.ValidString(r.reason.s):
			c.ps.at(r.reason.at, fmt.Sprintf("the release of %+q has no reason", r.pattern.s), "write why, and who agreed")
		}
	}
	for _, t := range c.distinct(patterns, exactPattern) {
		if p, ok := c.pattern(t, exactPattern); ok {
			i := slices.IndexFunc(s.release, func(r specRelease) bool { return r.pattern == t })
			out = append(out, release{p, s.release[i].reason.s, t.at})
		}
	}
	return out
}

func (c *checker) limits(s spec, otherwise Limits) Limits {
	if s.limits == nil {
		return otherwise
	}
	l := *s.limits
	if min(int64(l.Files), int64(l.Created), int64(l.Deleted), int64(l.ChangedLines), l.FileBytes, l.TotalBytes) < 0 {
		c.ps.at(s.at.in("limits"), "a limit is negative", "write a whole number, 0 for none")
	}
	return l
}
