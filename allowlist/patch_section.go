// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"strings"
)

// patchSection is what stage 1 sees in the part of a patch that belongs to one file.
type patchSection struct {
	line  int // of the git line
	name  string
	modes patchModes
	hunks []patchHunk
}

// patchModes holds the modes as they are written; empty where the line is missing.
type patchModes struct{ old, new, deleted, created, index string }

// op is the kind of the section.
func (s *patchSection) op() Op {
	switch {
	case s.modes.created != "":
		return Create
	case s.modes.deleted != "":
		return Delete
	}
	return Modify
}

// scanPatch is stage 1. It accepts one form of a patch, the one that git writes, because every freedom that a parser
// grants is one that two parsers use differently.
func scanPatch(patch []byte) ([]patchSection, error) {
	if len(patch) == 0 {
		return nil, malformed(1, "the patch is empty")
	}
	if i := bytes.IndexByte(patch, 0); i >= 0 {
		return nil, malformed(lineOf(patch, i), "a NUL byte: binary content cannot be patched")
	}
	if patch[len(patch)-1] != '\n' {
		return nil, malformed(lineOf(patch, len(patch)), "the last line does not end with a newline")
	}
	var sections []patchSection
	for c := newCursor(patch); !c.done(); {
		s, err := scanSection(c)
		if err != nil {
			return nil, err
		}
		sections = append(sections, s)
	}
	return sections, nil
}

// scanSection reads from one git line up to the next.
func scanSection(c *lineCursor) (patchSection, error) {
	s := patchSection{line: c.num}
	var err error
	if s.name, err = scanGitLine(c); err != nil {
		return s, err
	}
	if err = s.scanModes(c); err != nil {
		return s, err
	}
	if c.at("--- ") {
		if err = s.scanFileLines(c); err != nil {
			return s, err
		}
		if err = s.scanHunks(c); err != nil {
			return s, err
		}
	}
	if !c.done() && !c.at(gitLine) {
		return s, malformed(c.num, "a line that belongs to no section, or a header line out of place")
	}
	return s, s.checkKind()
}

const gitLine = "diff --git "

// scanGitLine returns the name in "diff --git a/X b/X". X may hold anything, even " b/": since both names are equal, the
// length of the line alone says where the first one ends.
func scanGitLine(c *lineCursor) (string, error) {
	num := c.num
	rest, ok := bytes.CutPrefix(c.next(), []byte(gitLine))
	if !ok {
		return "", malformed(num, "a section starts with a diff --git line, and nothing stands outside sections")
	}
	if bytes.IndexByte(rest, '\r') >= 0 {
		return "", malformed(num, "a carriage return in a header line")
	}
	text := string(rest)
	n := (len(text) - len("a/ b/")) / 2
	if n < 1 || len(text) < len("a/")+n || text != "a/"+text[2:2+n]+" b/"+text[2:2+n] {
		return "", malformed(num, "the git line does not name one file as a/X b/X")
	}
	name := text[2 : 2+n]
	if strings.Contains(name, `"`) {
		return "", malformed(num, "quoted names are not accepted: write names beyond ASCII as they are")
	}
	return name, nil
}

// checkKind refuses a section that says two things about its file, or nothing.
func (s *patchSection) checkKind() error {
	m := s.modes
	switch {
	case m.created != "" && m.deleted != "":
		return malformed(s.line, "a section that both creates and deletes its file")
	case (m.created != "" || m.deleted != "") && (m.old != "" || m.new != ""):
		return malformed(s.line, "a section that changes the mode of a file that it creates or deletes")
	case s.op() == Modify && len(s.hunks) == 0 && (m.new == "" || m.new == m.old):
		return malformed(s.line, "a section without any effect")
	}
	return nil
}
