// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
)

// addedDirective says which directive the content has that the base lacks and no rule grants, or nothing. It reads lines,
// not syntax: go generate runs lines that stand in strings, and a compiler may read what a parser takes for a comment.
// It reads Go and assembler files under any rule, and any file under a region scope.
func (s scope) addedDirective(name string, base, content []byte, creates, scoped bool) string {
	ext := strings.ToLower(path.Ext(name))
	asm := ext == ".s" || ext == ".sx" // and .S, which is lower-case by now
	if ext != ".go" && !asm && !scoped {
		return ""
	}
	if asm && creates && !s.directives["asm"] {
		return "the edit creates an assembler file (asm)"
	}
	had := map[string]int{}
	for _, d := range directivesOf(ext, base) {
		had[d.key()]++
	}
	for _, d := range directivesOf(ext, content) {
		if had[d.key()]--; had[d.key()] >= 0 || s.directives[d.name] {
			continue
		}
		return fmt.Sprintf("%s adds a directive: %s", atLine(d.line), printable(d.name))
	}
	if ext == ".go" && !s.directives["cgo"] && importsC(content, true) && !importsC(base, false) {
		return `the edit adds an import of "C" (cgo)`
	}
	return ""
}

// directive is one directive of one line. A line can be several.
type directive struct {
	name string
	line int
	text string // the trimmed line
}

// key makes a multiset of lines: a directive may move, but not multiply.
func (d directive) key() string { return d.name + "\x00" + d.text }

// printable keeps text of a file out of messages; the names of real directives are short and plain.
func printable(name string) string {
	if len(name) > 40 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_:") != "" {
		return "go:"
	}
	return name
}

var byteOrderMark = []byte("\uFEFF")

// directivesOf lists the directives of a file in the order of its lines.
func directivesOf(ext string, text []byte) []directive {
	text = bytes.TrimPrefix(text, byteOrderMark) // tools skip it, and then see line 1
	var all []directive
	for c := newCursor(text); !c.done(); {
		num := c.num
		line := string(bytes.TrimSpace(c.next()))
		names := lineDirectives(line)
		if num == 1 && strings.HasPrefix(line, "#!") {
			names = append(names, "shebang")
		}
		if num <= 2 && ext == ".py" && hasCoding(line) {
			names = append(names, "coding")
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			all = append(all, directive{name, num, line})
		}
	}
	return all
}
