// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"strconv"
)

// patchHunk is what stage 1 sees of a hunk.
type patchHunk struct {
	line     int // of the hunk header
	old, new span
	trailing bool // whether it ends with context
	endsOld  bool // its old lines end without a newline, so they end the file
	endsNew  bool // the same of its new lines
}

// span is a range of lines. Start counts the lines before it, so a header that counts from 1, or from 0 for an empty
// range, has been normalised away.
type span struct{ start, count int }

const noNewline = `\ No newline at end of file`

// scanHunks reads all hunks of a section. They ascend and do not overlap, and the two sides of the headers agree on how
// far the file has moved: git looks for a hunk at its new position, others at its old one.
func (s *patchSection) scanHunks(c *lineCursor) error {
	shift, end := 0, -1
	for first := true; first || c.at("@@ "); first = false {
		h, err := scanHunk(c)
		if err != nil {
			return err
		}
		if len(s.hunks) > 0 {
			last := s.hunks[len(s.hunks)-1]
			if last.endsOld || last.endsNew {
				return malformed(h.line, "a hunk behind the end of the file")
			}
			if h.old.start < end || h.old.start <= last.old.start {
				return malformed(h.line, "hunks must ascend and must not overlap")
			}
		}
		if h.new.start != h.old.start+shift {
			return malformed(h.line, "the new position does not follow from the old one and the hunks before")
		}
		shift += h.new.count - h.old.count
		end = h.old.start + h.old.count
		s.hunks = append(s.hunks, h)
	}
	return nil
}

// scanHunk reads one hunk.
func scanHunk(c *lineCursor) (patchHunk, error) {
	if c.done() {
		return patchHunk{}, malformed(c.num, "file lines without a hunk")
	}
	h, ok := parseHunkHeader(c.peek())
	h.line = c.num
	if !ok {
		return h, malformed(c.num, "a hunk header is missing or not of the form @@ -l,n +l,n @@")
	}
	c.next()
	err := h.scanLines(c)
	return h, err
}

// scanLines reads the lines of a hunk. The counts decide where it ends, not the look of a line: "--- a/X" may be a
// removed line.
func (h *patchHunk) scanLines(c *lineCursor) error {
	left, changes := [2]int{h.old.count, h.new.count}, false
	for left[0] > 0 || left[1] > 0 {
		if c.done() {
			return malformed(h.line, "the hunk has fewer lines than its header counts")
		}
		num, kind := c.num, lineKind(c.next())
		switch kind {
		case ' ':
			left[0], left[1] = left[0]-1, left[1]-1
		case '-':
			left[0], changes = left[0]-1, true
		case '+':
			left[1], changes = left[1]-1, true
		default:
			return malformed(num, "a hunk line must start with a space, + or -")
		}
		if left[0] < 0 || left[1] < 0 {
			return malformed(num, "the hunk has other lines than its header counts")
		}
		h.trailing = kind == ' '
		if err := h.scanMarker(c, kind, left[0], left[1]); err != nil {
			return err
		}
	}
	if !changes {
		return malformed(h.line, "a hunk that changes nothing")
	}
	return nil
}

// lineKind returns the first byte of a hunk line. A wholly empty line is an empty context line that lost its space.
func lineKind(line []byte) byte {
	if len(line) == 0 {
		return ' '
	}
	return line[0]
}

// scanMarker reads the line that says that the line before has no newline. That can be true of the last line of a file
// only; anywhere else it would glue two lines together.
func (h *patchHunk) scanMarker(c *lineCursor, kind byte, oldLeft, newLeft int) error {
	if !c.at(`\`) {
		return nil
	}
	num := c.num
	if string(c.next()) != noNewline {
		return malformed(num, "a line with a backslash that is not %q", noNewline)
	}
	if kind != '+' && oldLeft > 0 || kind != '-' && newLeft > 0 {
		return malformed(num, "lines follow one that has no newline")
	}
	h.endsOld = h.endsOld || kind != '+'
	h.endsNew = h.endsNew || kind != '-'
	return nil
}

// parseHunkHeader reads "@@ -l[,n] +l[,n] @@"; what follows is a heading for people.
func parseHunkHeader(line []byte) (h patchHunk, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte("@@ -"))
	if !ok || bytes.IndexByte(line, '\r') >= 0 {
		return h, false
	}
	if h.old, rest, ok = cutSpan(rest); !ok {
		return h, false
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(" +")); !ok {
		return h, false
	}
	if h.new, rest, ok = cutSpan(rest); !ok {
		return h, false
	}
	return h, bytes.HasPrefix(rest, []byte(" @@"))
}

// cutSpan reads "l" or "l,n" from the start of b.
func cutSpan(b []byte) (s span, rest []byte, ok bool) {
	first, rest, ok := cutNumber(b)
	if !ok {
		return s, rest, false
	}
	s.count = 1
	if after, comma := bytes.CutPrefix(rest, []byte{','}); comma {
		if s.count, rest, ok = cutNumber(after); !ok {
			return s, rest, false
		}
	}
	s.start = first
	if s.count > 0 {
		s.start-- // of an empty range git writes the line before it
	}
	return s, rest, s.start >= 0
}

// cutNumber takes at most nine digits: no file that can be patched has more lines.
func cutNumber(b []byte) (n int, rest []byte, ok bool) {
	i := 0
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	if i == 0 || i > 9 {
		return 0, b, false
	}
	n, err := strconv.Atoi(string(b[:i]))
	return n, b[i:], err == nil
}
