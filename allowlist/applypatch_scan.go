// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"strings"
)

const (
	beginFirst  = "*** Begin Patch"
	beginLast   = "*** End Patch"
	beginAdd    = "*** Add File: "
	beginUpdate = "*** Update File: "
	beginDelete = "*** Delete File: "
	beginEOF    = "*** End of File"
)

// beginHunk is one hunk of an update. Old and new lines are kept with their newlines.
type beginHunk struct {
	line      int
	anchor    string
	hasAnchor bool
	old, new  []byte
	atEnd     bool
}

// scanApplyPatch reads the whole patch; every line of it belongs to something.
func scanApplyPatch(patch []byte) ([]beginSection, error) {
	c := newCursor(patch)
	if !c.atExactly(beginFirst) {
		return nil, malformed(1, "the first line is not %s", beginFirst)
	}
	c.next()
	var sections []beginSection
	for !c.atExactly(beginLast) {
		s, err := scanBeginSection(c)
		if err != nil {
			return nil, err
		}
		sections = append(sections, s)
	}
	c.next()
	if !c.done() {
		return nil, malformed(c.num, "nothing may follow %s", beginLast)
	}
	if len(sections) == 0 {
		return nil, malformed(1, "the patch has no section")
	}
	return sections, nil
}

// scanBeginSection reads one section up to the next line that is not a part of it.
func scanBeginSection(c *lineCursor) (beginSection, error) {
	s := beginSection{line: c.num}
	if c.done() {
		return s, malformed(c.num, "the patch ends before %s", beginLast)
	}
	header := string(c.next())
	var body func(*lineCursor) error
	for _, kind := range []struct {
		prefix string
		op     Op
		body   func(*lineCursor) error
	}{
		{beginAdd, Create, s.scanAdded},
		{beginUpdate, Modify, s.scanUpdate},
		{beginDelete, Delete, func(*lineCursor) error { return nil }},
	} {
		if name, ok := strings.CutPrefix(header, kind.prefix); ok {
			s.op, s.path, body = kind.op, name, kind.body
		}
	}
	if body == nil {
		return s, malformed(s.line, "a line that starts no section; a move is sent as a deletion and an addition")
	}
	if err := checkBareName(s.path, s.line); err != nil {
		return s, err
	}
	err := body(c)
	return s, err
}

// scanAdded takes the lines of a new file. What is not added ends the section.
func (s *beginSection) scanAdded(c *lineCursor) error {
	s.added = []byte{}
	for c.at("+") {
		s.added = append(s.added, c.next()[1:]...)
		s.added = append(s.added, '\n')
	}
	return nil
}

// scanUpdate takes the hunks of an update.
func (s *beginSection) scanUpdate(c *lineCursor) error {
	if !c.at("@@") {
		return malformed(c.num, "an update starts with a hunk, and a hunk with @@")
	}
	for c.at("@@") {
		if n := len(s.hunks); n > 0 && s.hunks[n-1].atEnd {
			return malformed(c.num, "a hunk behind the end of the file")
		}
		h, err := scanBeginHunk(c)
		if err != nil {
			return err
		}
		s.hunks = append(s.hunks, h)
	}
	return nil
}

// scanBeginHunk takes a hunk up to the first line that is not one of its lines.
func scanBeginHunk(c *lineCursor) (beginHunk, error) {
	h := beginHunk{line: c.num}
	header := string(c.next())
	h.anchor, h.hasAnchor = strings.CutPrefix(header, "@@ ")
	if header != "@@" && (!h.hasAnchor || h.anchor == "") {
		return h, malformed(h.line, "a hunk starts with @@ alone, or with @@, a space and one line of the file")
	}
	changes := false
	for c.at(" ") || c.at("-") || c.at("+") {
		line := c.next()
		text := append(bytes.Clone(line[1:]), '\n')
		if line[0] != '+' {
			h.old = append(h.old, text...)
		}
		if line[0] != '-' {
			h.new = append(h.new, text...)
		}
		changes = changes || line[0] != ' '
	}
	if !c.done() && !c.at("@@") && !c.at("*** ") {
		return h, malformed(c.num, "a hunk line must start with a space, + or -")
	}
	if !changes {
		return h, malformed(h.line, "a hunk that changes nothing")
	}
	if c.atExactly(beginEOF) {
		h.atEnd = true
		c.next()
	}
	return h, nil
}
