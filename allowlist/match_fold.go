// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// foldComponents folds the components of a protect pattern as paths will be folded. What would change its meaning by
// folding is refused, since a pattern that protects less than it says is a hole.
func foldComponents(components []string) ([]string, fault, bool) {
	joined := strings.Join(components, "/")
	for _, r := range joined {
		if r >= utf8.RuneSelf && strings.ContainsAny(foldKey(string(r)), `*?[]{}/\`) {
			return nil, fault{fmt.Sprintf("%+q folds to a character of the pattern language", r), "use ? in its place"}, false
		}
	}
	for i := 0; i < len(joined); i++ {
		if joined[i] != '[' {
			continue
		}
		c := class(joined[i:])
		if !foldableClass(c) {
			return nil, fault{fmt.Sprintf("class %q changes its meaning when case is folded", c),
				"name ASCII characters, and ranges within 0-9, a-z or A-Z"}, false
		}
		i += len(c) - 1
	}
	return strings.Split(foldKey(joined), "/"), fault{}, true
}

// addForms keeps what folding takes from an alternative. A "?" matches one rune, and folding may make two of it; a class
// that is negated matches a capital letter, and may not match the small one.
func (p *pattern) addForms(components []string) {
	p.plain = append(p.plain, strings.Split(foldRunes(strings.Join(components, "/")), "/"))
	if slices.ContainsFunc(components, hasNegatedClass) {
		p.raw = append(p.raw, components)
	}
}

func hasNegatedClass(c string) bool {
	for i := 0; i < len(c); i++ {
		if c[i] == '[' {
			if c[i+1] == '!' || c[i+1] == '^' {
				return true
			}
			i += len(class(c[i:])) - 1
		}
	}
	return false
}

// foldableClass reports whether a class means the same once its letters are lower-case: [A-z] holds an underscore, and
// [a-z] does not.
func foldableClass(c string) bool {
	body := strings.TrimLeft(c[1:len(c)-1], "!^")
	for i := range len(body) {
		if body[i] >= utf8.RuneSelf {
			return false
		}
		if body[i] != '-' || i == 0 || i == len(body)-1 {
			continue
		}
		if k := charKind(body[i-1]); k == 0 || k != charKind(body[i+1]) {
			return false
		}
	}
	return true
}

// charKind tells digits, small and capital letters apart; zero is anything else.
func charKind(b byte) int {
	switch {
	case '0' <= b && b <= '9':
		return 1
	case 'a' <= b && b <= 'z':
		return 2
	case 'A' <= b && b <= 'Z':
		return 3
	}
	return 0
}
