// SPDX-License-Identifier: Apache-2.0

package allowlist

import "bytes"

// lineCursor walks over the lines of a patch. Lines end at LF and nowhere else: a reader that also took CR or U+2028 for
// an end would see other lines than the tools that a patch is written for.
type lineCursor struct {
	rest []byte
	num  int // of the line that peek returns, from 1
}

func newCursor(text []byte) *lineCursor { return &lineCursor{rest: text, num: 1} }

func (c *lineCursor) done() bool { return len(c.rest) == 0 }

// peek returns the current line without its LF; nil at the end.
func (c *lineCursor) peek() []byte {
	line, _, _ := bytes.Cut(c.rest, []byte{'\n'})
	return line
}

// next returns the current line without its LF and goes on to the one after it.
func (c *lineCursor) next() []byte {
	line, rest, _ := bytes.Cut(c.rest, []byte{'\n'})
	c.rest = rest
	c.num++
	return line
}

// at reports whether the current line starts with prefix. There is no line at the end.
func (c *lineCursor) at(prefix string) bool { return bytes.HasPrefix(c.rest, []byte(prefix)) }

// atExactly reports whether the current line is text.
func (c *lineCursor) atExactly(text string) bool { return !c.done() && string(c.peek()) == text }

// lineOf returns the number of the line that the byte at offset i lies in.
func lineOf(text []byte, i int) int { return 1 + bytes.Count(text[:i], []byte{'\n'}) }
