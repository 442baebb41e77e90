// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// scope checks what a rule says about the inside of files.
func (c *checker) scope(r specRule, rule *surfaceRule) {
	if r.hasBodies && r.regions != nil {
		c.ps.at(r.regions.begin.at, "a rule has go_bodies and regions", "keep one of them, or write two rules")
	}
	for _, op := range []Op{Create, Delete} {
		if rule.ops[op] && (r.hasBodies || r.regions != nil) {
			c.ps.at(rule.opsAt[op], fmt.Sprintf("a rule with go_bodies or regions grants %v", op),
				"write ops: [modify], and a rule of its own for files that may be created or deleted")
		}
	}
	if r.hasBodies {
		c.bodies(r, rule)
	}
	if r.regions != nil {
		c.regions(*r.regions, rule)
	}
}

// funcName matches "Name", "(T).Name" and "(*T).Name", where T may have type parameters.
var funcName = regexp.MustCompile(`^(\(\*?[\pL_][\pL_\pN]*(\[[^\[\]()\n]+\])?\)\.)?[\pL_][\pL_\pN]*$`)

func (c *checker) bodies(r specRule, rule *surfaceRule) {
	if len(r.goBodies) == 0 {
		c.ps.at(r.bodiesAt, "no function is named", `name at least one, such as Score or "(*Pool).Next"`)
	}
	for _, t := range r.goBodies {
		switch {
		case !funcName.MatchString(t.s):
			c.ps.at(t.at, fmt.Sprintf("%+q does not name a function", t.s),
				"write Name, (T).Name or (*T).Name, with the receiver as in the source")
		case slices.Contains(rule.goBodies, t.s):
			c.ps.at(t.at, fmt.Sprintf("%+q is named twice", t.s), "keep one of them")
		default:
			rule.goBodies = append(rule.goBodies, t.s)
		}
	}
	for _, p := range rule.paths {
		for _, components := range p.pattern.alts {
			if !strings.HasSuffix(components[len(components)-1], ".go") {
				c.ps.at(p.at, fmt.Sprintf("%+q also matches files that are not Go", p.pattern.text),
					"go_bodies needs paths that end in .go")
				break
			}
		}
	}
}

// regions checks the markers. Their tokens find what only looks like a marker, so each needs a letter to start with.
func (c *checker) regions(m specMarkers, rule *surfaceRule) {
	good := true
	for _, t := range []text{m.begin, m.end} {
		what := ""
		switch {
		case t.bad:
			good = false
			continue
		case t.s == "":
			what = "a marker is missing"
		case strings.TrimSpace(t.s) != t.s:
			what = "a marker starts or ends with a blank"
		case strings.ContainsFunc(t.s, func(r rune) bool { return !unicode.IsPrint(r) }):
			what = "a marker has a character that does not print"
		case !strings.ContainsFunc(t.s, unicode.IsLetter):
			what = "a marker has no letter"
		default:
			continue
		}
		good = false
		c.ps.at(t.at, what, `write begin and end, each the text of a whole line, such as "# evolve:begin"`)
	}
	if !good {
		return
	}
	begin, end := m.begin.s+" ", m.end.s+" "
	// With one marker within the other, a line could be both: "# x y" is "# x" with the name y.
	if hasPrefixFold(begin, end) || hasPrefixFold(end, begin) {
		c.ps.at(m.end.at, fmt.Sprintf("the markers %+q and %+q cannot be told apart", m.begin.s, m.end.s),
			"choose two different texts")
		return
	}
	rule.regions = &Markers{Begin: m.begin.s, End: m.end.s}
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// directiveName matches the names that a rule may grant.
var directiveName = regexp.MustCompile(`^(go:[A-Za-z][A-Za-z0-9_]*|export|extern|line|sys|build|cgo|asm|shebang|coding)$`)

func (c *checker) directives(list []text) []string {
	var names []string
	for _, t := range list {
		switch {
		case !directiveName.MatchString(t.s):
			c.ps.at(t.at, fmt.Sprintf("%+q is not the name of a directive", t.s),
				"write go:NAME, export, extern, line, sys, build, cgo, asm, shebang or coding")
		case slices.Contains(names, t.s):
			c.ps.at(t.at, fmt.Sprintf("%+q is granted twice", t.s), "keep one of them")
		default:
			names = append(names, t.s)
		}
	}
	return names
}
