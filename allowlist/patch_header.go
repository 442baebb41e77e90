// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"strings"
)

// scanModes reads the header lines before the file lines. Trying the kinds once each, in the order of git, makes a
// repeated, misplaced or unknown line one that nobody takes: the section ends there, and a section may only be followed
// by another one.
func (s *patchSection) scanModes(c *lineCursor) error {
	for _, h := range []struct {
		prefix string
		mode   *string
	}{
		{"old mode ", &s.modes.old},
		{"new mode ", &s.modes.new},
		{"deleted file mode ", &s.modes.deleted},
		{"new file mode ", &s.modes.created},
	} {
		if !c.at(h.prefix) {
			continue
		}
		num := c.num
		*h.mode = string(c.next()[len(h.prefix):])
		if !isOctal(*h.mode) {
			return malformed(num, "a mode that is not an octal number")
		}
	}
	if c.at("index ") {
		return s.scanIndex(c)
	}
	return nil
}

// scanIndex reads "index OLD..NEW" and the mode that git adds when it does not change.
func (s *patchSection) scanIndex(c *lineCursor) error {
	num := c.num
	ids, mode, hasMode := strings.Cut(string(c.next()[len("index "):]), " ")
	before, after, ok := strings.Cut(ids, "..")
	if !ok || !isObjectID(before) || !isObjectID(after) {
		return malformed(num, "an index line without two object names")
	}
	if hasMode && !isOctal(mode) {
		return malformed(num, "a mode that is not an octal number")
	}
	s.modes.index = mode
	return nil
}

// isOctal limits the length so that the number fits into 32 bits.
func isOctal(s string) bool {
	return 0 < len(s) && len(s) <= 10 && strings.Trim(s, "01234567") == ""
}

// isObjectID takes abbreviated names of both hash functions of git.
func isObjectID(s string) bool {
	return 0 < len(s) && len(s) <= 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// scanFileLines reads the --- and +++ lines. They must repeat the name of the git line: git and patch write to the file
// that they name, whatever the git line says.
func (s *patchSection) scanFileLines(c *lineCursor) error {
	old, new := "a/"+s.name, "b/"+s.name
	if s.modes.created != "" {
		old = devNull
	}
	if s.modes.deleted != "" {
		new = devNull
	}
	for _, want := range []struct{ prefix, name string }{{"--- ", old}, {"+++ ", new}} {
		if !c.at(want.prefix) {
			return malformed(c.num, "the --- line and the +++ line come in a pair")
		}
		num := c.num
		line := c.next()
		if bytes.IndexByte(line, '\r') >= 0 {
			return malformed(num, "a carriage return in a header line")
		}
		if !isFileName(string(line[len(want.prefix):]), want.name) {
			return malformed(num, "the file lines do not name the file of the git line, or /dev/null without its mode line")
		}
	}
	return nil
}

const devNull = "/dev/null"

// isFileName also takes the tab that git puts behind a name with a space, so that older tools find its end.
func isFileName(got, want string) bool {
	return got == want || want != devNull && strings.Contains(want, " ") && got == want+"\t"
}
