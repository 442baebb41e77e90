// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lineDirectives returns the names of the directives that a trimmed line is. Where tools differ in the blanks that they
// accept, the widest reading counts. Go's scanner takes carriage returns out of comments, and go generate does not.
func lineDirectives(line string) []string {
	names := appendDirectives(nil, line)
	if strings.Contains(line, "\r") {
		names = appendDirectives(names, strings.TrimSpace(strings.ReplaceAll(line, "\r", "")))
	}
	return names
}

func appendDirectives(names []string, line string) []string {
	if strings.Contains(line, "/*line ") || strings.Contains(line, "/*line\t") {
		names = append(names, "line")
	}
	if strings.Contains(line, "#cgo") {
		names = append(names, "cgo") // anywhere: what cgo reads as a line may start behind comments and any blank
	}
	for _, word := range []string{"export", "extern"} {
		// Anywhere: cgo reads all comments before a function, and several of them can share a line.
		if strings.Contains(line, "//"+word+" ") || strings.Contains(line, "//"+word+"\t") {
			names = append(names, word)
		}
	}
	for comment := range lineComments(line) {
		names = appendComment(names, comment)
	}
	return names
}

// lineComments yields what follows "//" at the start of a line, and behind a comment that ends in it: a compiler takes
// such a line for blank so far.
func lineComments(line string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for more := true; more; _, line, more = strings.Cut(line, "*/") {
			if comment, ok := strings.CutPrefix(strings.TrimSpace(line), "//"); ok && !yield(comment) {
				return
			}
		}
	}
}

func appendComment(names []string, comment string) []string {
	if rest, ok := strings.CutPrefix(comment, "go:"); ok {
		if first, _ := utf8.DecodeRuneInString(rest); unicode.IsLetter(first) {
			names = append(names, "go:"+firstWord(rest))
		}
	}
	if word := firstWord(comment); word == "line" && word != comment {
		names = append(names, word)
	}
	if strings.HasPrefix(comment, "sys") {
		names = append(names, "sys")
	}
	if strings.HasPrefix(strings.TrimSpace(comment), "+build") {
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

// codingLine is the pattern of PEP 263.
var codingLine = regexp.MustCompile(`^[ \t\f]*#.*?coding[:=][ \t]*[-_.a-zA-Z0-9]+`)

// hasCoding looks for an encoding comment. Python ends a line at a carriage return too.
func hasCoding(line string) bool {
	for part := range strings.SplitSeq(line, "\r") {
		if codingLine.MatchString(part) {
			return true
		}
	}
	return false
}
