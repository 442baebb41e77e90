// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// pattern is a pattern with its braces expanded, so that everything behind it deals with sequences of components only.
// A component is literal, has wildcards, or is "**".
type pattern struct {
	text  string
	alts  [][]string // each without braces, folded if it protects; never empty
	plain [][]string // the same folded rune by rune, if it protects
	raw   [][]string // of them as written those with a negated class, if it protects
}

// patternKind says which meaning a pattern has.
type patternKind uint8

const (
	exactPattern   patternKind = iota // surface and release: anchored, exact in case, a trailing slash means "/**"
	protectPattern                    // protect and gate: folded, "dir", "dir/" and "dir/**" are the same
)

// fault is what is wrong with a value, and the way out.
type fault struct{ rule, fix string }

// parsePattern returns all that is wrong with a pattern, or the pattern.
func parsePattern(text string, kind patternKind) (pattern, []fault) {
	if f, ok := checkPatternText(text); !ok {
		return pattern{}, []fault{f}
	}
	alts, err := expandBraces(text)
	if err != nil {
		return pattern{}, []fault{{err.Error(), "write fewer alternatives, or several patterns"}}
	}
	p := pattern{text: text}
	var faults []fault
	for _, alt := range alts {
		components := splitPattern(alt, kind)
		f, ok := checkComponents(components, strings.Count(alt, "**") > strings.Count(text, "**"))
		written := components
		if ok && kind == protectPattern {
			components, f, ok = foldComponents(components)
		}
		if !ok {
			faults = append(faults, f)
			continue
		}
		p.alts = append(p.alts, components)
		if kind == protectPattern {
			p.addForms(written)
		}
	}
	// The alternatives of one pattern tend to be wrong in the same way.
	return p, slices.Compact(faults)
}

// checkPatternText looks at the pattern as it is written.
func checkPatternText(text string) (fault, bool) {
	switch {
	case text == "":
		return fault{"the pattern is empty", "write a pattern, or remove the entry"}, false
	case text[0] == '/' || text[0] == '~':
		return fault{"the pattern is absolute", "patterns start at the root of the tree: write it without the leading " +
			text[:1]}, false
	case text[0] == '!':
		return fault{"there is no negation", "remove the entry, and list what shall be allowed in surface"}, false
	case strings.Contains(text, `\`):
		return fault{"the pattern has a backslash", "separate components with /, and write a literal bracket as a class: [[]"},
			false
	case len(text) > maxPath:
		return fault{fmt.Sprintf("the pattern has %d bytes, more than %d", len(text), maxPath), "shorten it"}, false
	case !doublestar.ValidatePattern(text):
		return fault{"the pattern's brackets or braces do not match", "close them, and write a literal bracket as a class: [[]"},
			false
	}
	return fault{}, true
}

// splitPattern gives the components, in the one form that each meaning has. For an exact pattern a final "**" becomes
// "**", "*": what is below a directory, never the directory itself.
func splitPattern(alt string, kind patternKind) []string {
	if strings.HasSuffix(alt, "/") {
		alt += "**"
	}
	components := strings.Split(alt, "/")
	components = slices.CompactFunc(components, func(a, b string) bool { return a == "**" && b == "**" })
	last := len(components) - 1
	if components[last] != "**" {
		return components
	}
	if kind == protectPattern && last > 0 {
		return components[:last]
	}
	if kind == protectPattern {
		return []string{"*"} // everything, at any depth
	}
	return append(components, "*")
}

// checkComponents holds the components against the path grammar, with a letter in place of every wildcard: what the
// grammar refuses in a path, no pattern can match.
func checkComponents(components []string, starsMade bool) (fault, bool) {
	plain := make([]string, len(components))
	for i, c := range components {
		switch {
		case c == "":
			return fault{"the pattern has an empty component", "write single slashes"}, false
		case starsMade || c != "**" && strings.Contains(c, "**"):
			return fault{"** stands beside other characters", "** is a whole component; within a component write *"}, false
		case !doublestar.ValidatePattern(c):
			return fault{fmt.Sprintf("component %q is not a valid pattern", c), "a class cannot contain a slash"}, false
		}
		plain[i] = withoutWildcards(c)
	}
	if code, detail := checkPath(strings.Join(plain, "/")); code != "" {
		return fault{fmt.Sprintf("no path can match: %s (%s)", detail, code), "write the name as it may stand in a path"}, false
	}
	return fault{}, true
}

// withoutWildcards replaces each wildcard by a letter.
func withoutWildcards(c string) string {
	if !hasWildcard(c) {
		return c
	}
	var b strings.Builder
	for i := 0; i < len(c); i++ {
		switch c[i] {
		case '*', '?':
			b.WriteByte('x')
		case '[':
			i += len(class(c[i:])) - 1
			b.WriteByte('x')
		default:
			b.WriteByte(c[i])
		}
	}
	return b.String()
}

// class is the class that s, a valid pattern, starts with: its brackets included.
func class(s string) string {
	first := 1
	if s[first] == '!' || s[first] == '^' {
		first++
	}
	return s[:first+strings.IndexByte(s[first:], ']')+1]
}

// hasWildcard reports whether a component is more than a literal name. Braces outside classes are gone by now.
func hasWildcard(c string) bool { return strings.ContainsAny(c, "*?[") }

// literalHead is the number of components before the first with a wildcard.
func literalHead(components []string) int {
	if i := slices.IndexFunc(components, hasWildcard); i >= 0 {
		return i
	}
	return len(components)
}
