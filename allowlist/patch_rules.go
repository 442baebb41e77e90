// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

const (
	plainMode = "100644"
	execMode  = "100755"
)

// judgeModes is the first half of stage 3. The type is judged before the change of a mode: a link is worse than a bit.
func (s *patchSection) judgeModes() error {
	m := s.modes
	var written []string
	for _, mode := range []string{m.old, m.new, m.deleted, m.created, m.index} {
		if mode != "" {
			written = append(written, mode)
		}
	}
	for _, mode := range written {
		if mode != plainMode && mode != execMode {
			return &parseRefusal{ErrFileType, atLine(s.line), "a mode other than 100644 and 100755"}
		}
	}
	if m.created == execMode {
		return &parseRefusal{ErrMode, atLine(s.line), "a new file with the executable bit"}
	}
	// The index line repeats the mode of a file that keeps it.
	if m.index != "" && m.index != written[0] {
		return &parseRefusal{ErrMode, atLine(s.line), "the modes of this section differ"}
	}
	if m.old != m.new {
		return &parseRefusal{ErrMode, atLine(s.line), "a change of mode"}
	}
	return nil
}

// place refuses hunks that git would put elsewhere than at the line that their header names, and puts right the one
// position that the library reads differently. A hunk without context behind it is taken by git to end the file,
// wherever its header says it lies.
func (s *patchSection) place(base []byte, file *gitdiff.File) error {
	lines := bytes.Count(base, []byte{'\n'})
	open := len(base) > 0 && base[len(base)-1] != '\n' // the last line has no newline
	if open {
		lines++
	}
	for i, h := range s.hunks {
		if h.old.count == 0 && h.old.start > 0 {
			// The header of an insertion names the line before it; the library would insert before that line.
			file.TextFragments[i].OldPosition++
		}
		if why := h.misplaced(base, lines, open, file.TextFragments[i]); why != "" {
			return &parseRefusal{ErrConflict, atLine(h.line), why}
		}
	}
	return nil
}

// misplaced says why a hunk cannot stay where its header puts it.
func (h patchHunk) misplaced(base []byte, lines int, open bool, f *gitdiff.TextFragment) string {
	end := h.old.start + h.old.count
	switch {
	case end > lines:
		return "the file has fewer lines than the hunk needs"
	case h.trailing:
		return "" // every line is fixed by the context, which the library compares
	case end == lines && open && h.old.count == 0:
		return "the hunk adds lines behind one that has no newline"
	case end == lines:
		return ""
	case h.endsNew:
		return "the hunk ends the file, but lines follow it"
	case h.old.count == 0 || endsWithLines(base, f):
		return "without context behind it the hunk fits the end of the file as well"
	}
	return ""
}

// endsWithLines reports whether the last lines of base are the old lines of the hunk.
func endsWithLines(base []byte, f *gitdiff.TextFragment) bool {
	var old []byte
	for _, l := range f.Lines {
		if l.Old() {
			old = append(old, l.Line...)
		}
	}
	head, ok := bytes.CutSuffix(base, old)
	return ok && (len(head) == 0 || head[len(head)-1] == '\n')
}
