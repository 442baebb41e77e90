// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A rule that can never match, or never has an effect, is a mistake: its author believes that something is allowed, or
// released, that is not. What is reported here is certain; some dead rules are not found.

// dead reports such rules of a surface. protect is everything that is protected, defaults included.
func (c *checker) dead(rules []*surfaceRule, releases []release, protect *protectSet, l Limits) {
	for _, r := range rules {
		c.deadOps(r, l)
		c.deadSurface(r, releases, protect)
	}
	c.repeated(rules)
}

func (c *checker) deadOps(r *surfaceRule, l Limits) {
	for _, op := range []Op{Create, Modify, Delete} {
		if name := l.forbids(op); r.ops[op] && name != "" {
			c.ps.at(r.opsAt[op], fmt.Sprintf("%v is granted, and limit %s is 0", op, name),
				fmt.Sprintf("raise the limit, or do not grant %v", op))
		}
	}
}

// deadSurface reports a rule all of whose patterns are wholly protected.
func (c *checker) deadSurface(r *surfaceRule, releases []release, protect *protectSet) {
	var by Rule // of the first pattern, which stands for all
	for i, p := range r.paths {
		rule, whole := protect.whole(p.pattern, func(alt []string) bool {
			return slices.ContainsFunc(releases, func(rel release) bool {
				return overlap(rel.pattern, pattern{alts: [][]string{alt}})
			})
		})
		if !whole {
			return
		}
		if i == 0 {
			by = rule
		}
	}
	if len(r.paths) > 0 {
		c.ps.at(r.paths[0].at, fmt.Sprintf("the rule can never match: %+q is protected by %+q (%s)", r.paths[0].pattern.text,
			by.Pattern, by.Source), "remove the rule, or release the names if they are not of class core")
	}
}

// repeated reports a pattern with which a rule adds nothing to another one. Of two equal rules it is the later.
func (c *checker) repeated(rules []*surfaceRule) {
	by := map[string][]int{} // the rules that have a pattern
	for i, r := range rules {
		for _, p := range r.paths {
			by[p.spelling] = append(by[p.spelling], i)
		}
	}
	for i, r := range rules {
		for _, p := range r.paths {
			for _, j := range by[p.spelling] {
				if e := rules[j]; i != j && r.addsNothing(e) && (j < i || !e.addsNothing(r)) {
					c.ps.at(p.at, fmt.Sprintf("%+q never has an effect: %s says the same of it", p.pattern.text, e.at.field),
						"remove one of them")
					break
				}
			}
		}
	}
}

// addsNothing reports whether r says nothing about a path that e, which matches it too, does not say already.
func (r *surfaceRule) addsNothing(e *surfaceRule) bool {
	for op, granted := range r.ops {
		if granted && !e.ops[op] {
			return false
		}
	}
	for _, d := range r.directives {
		if !slices.Contains(e.directives, d) {
			return false
		}
	}
	for _, f := range r.goBodies {
		if !slices.Contains(e.goBodies, f) {
			return false
		}
	}
	// Bodies that e opens beyond those of r would be narrowed by r, so the lists must be equal.
	return len(r.goBodies) == len(e.goBodies) &&
		(r.regions == nil || e.regions != nil && *r.regions == *e.regions)
}

func (c *checker) deadRelease(r release, rules []*surfaceRule, protect *protectSet) {
	name := fmt.Sprintf("%+q", r.pattern.text)
	for _, alt := range r.pattern.alts {
		if rule, ok := protect.wholeAlt(alt); ok && rule.rank < rankSoft {
			c.ps.at(r.at, fmt.Sprintf("%s cannot be released: it is protected by %+q (%s)", name, rule.rule.Pattern,
				rule.rule.Source), "remove the release: core names, protect and gate always hold")
			return
		}
	}
	if !slices.ContainsFunc(r.pattern.alts, protect.maySoft) {
		c.ps.at(r.at, fmt.Sprintf("the release never has an effect: no default rule that can be released covers %s", name),
			"remove it, or write the name that is protected")
	}
	reached := slices.ContainsFunc(rules, func(s *surfaceRule) bool {
		return slices.ContainsFunc(s.paths, func(p surfacePath) bool { return overlap(p.pattern, r.pattern) })
	})
	if !reached {
		c.ps.at(r.at, fmt.Sprintf("the release never has an effect: no surface rule reaches %s", name),
			"add the path to a surface rule, or remove the release")
	}
}

// whole reports whether every path that the pattern matches is protected. released tells whether a release may reach an
// alternative.
func (p *protectSet) whole(pat pattern, released func(alt []string) bool) (Rule, bool) {
	var by Rule
	for _, alt := range pat.alts {
		r, ok := p.wholeAlt(alt)
		if !ok || r.rank == rankSoft && released(alt) {
			return Rule{}, false
		}
		by = r.rule
	}
	return by, true
}

// wholeAlt decides by the literal head, by the literal components, and by wildcards that stand in a protect pattern
// in the same form, for a component or for the first few.
func (p *protectSet) wholeAlt(alt []string) (*protectRule, bool) {
	best := p.matchHead(alt)
	same := func(text string) {
		if r, ok := p.byText[text]; ok {
			best = lower(best, []int{r})
		}
	}
	comparable, prefix := true, ""
	for _, c := range alt {
		if !sameWhenFolded(c) {
			comparable = false
			continue
		}
		same(foldKey(c))
		if prefix += foldKey(c); comparable {
			same(prefix)
		}
		prefix += "/"
	}
	if best < 0 {
		return nil, false
	}
	return p.rules[best], true
}

// matchHead is the rule that protects what lies below the literal head, or the path itself if all is literal, or
// anything below a literal component.
func (p *protectSet) matchHead(alt []string) int {
	head := literalHead(alt)
	if head == len(alt) {
		return p.match(strings.Join(alt, "/"))
	}
	best := -1
	if head > 0 {
		best = p.folded.matchBelow(foldKey(strings.Join(alt[:head], "/")), best)
	}
	for _, c := range alt[head:] {
		if hasWildcard(c) {
			continue
		}
		best = p.folded.matchNames(foldKey(c), best)
	}
	return best
}

// sameWhenFolded reports whether a component of an exact pattern means the same as part of a protect pattern. Folding may
// turn one character into two, and then "?" means something else, so only stars and ASCII are compared.
func sameWhenFolded(c string) bool {
	for i := range len(c) {
		if c[i] >= utf8.RuneSelf || c[i] == '?' || c[i] == '[' {
			return false
		}
	}
	return true
}

// maySoft reports whether a default rule that can be released may cover some path that the alternative matches.
func (p *protectSet) maySoft(alt []string) bool {
	for _, r := range p.rules {
		if r.rank != rankSoft {
			continue
		}
		for _, c := range alt {
			if c == "**" || overlapNames(foldKey(onlyStars(c)), r.pattern.alts[0][0]) {
				return true
			}
		}
	}
	return false
}
