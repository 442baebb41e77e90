// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lineDirectives returns the names of the directives that a trimmed line is. Where tools differ in the blanks that they
// accept, the widest reading counts.
func lineDirectives(line string) []string {
	var names []string
	if strings.Contains(line, "/*line ") || strings.Contains(line, "/*line\t") {
		names = append(names, "line")
	}
	if strings.Contains(line, "#cgo") && cgoLine.MatchString(line) {
		names = append(names, "cgo")
	}
	comment, ok := strings.CutPrefix(line, "//")
	if !ok {
		return names
	}
	if rest, ok := strings.CutPrefix(comment, "go:"); ok {
		if first, _ := utf8.DecodeRuneInString(rest); unicode.IsLetter(first) {
			names = append(names, "go:"+firstWord(rest))
		}
	}
	switch word := firstWord(comment); word {
	case "export", "extern", "line":
		if word != comment {
			names = append(names, word)
		}
	}
	if strings.HasPrefix(comment, "sys") {
		names = append(names, "sys")
	}
	if strings.HasPrefix(strings.TrimLeft(comment, " \t"), "+build") {
		names = append(names, "build")
	}
	return names
}

// firstWord returns s up to its first blank.
func firstWord(s string) string {
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i]
	}
	return s
}

var (
	// cgoLine finds #cgo at the start of a comment or of a line: cgo reads the text of the comments before an import, and
	// several of them can share a line.
	cgoLine = regexp.MustCompile(`(?:^|//|/\*)[\s*]*#cgo`)
	// codingLine is the pattern of PEP 263.
	codingLine = regexp.MustCompile(`^[ \t\f]*#.*?coding[:=][ \t]*[-_.a-zA-Z0-9]+`)
)

// hasCoding looks for an encoding comment. Python ends a line at a carriage return too.
func hasCoding(line string) bool {
	for part := range strings.SplitSeq(line, "\r") {
		if codingLine.MatchString(part) {
			return true
		}
	}
	return false
}
