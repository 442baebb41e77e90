// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// crossCheck is stage 2: a second, independent parser must see the same patch. Where the two differ, a third tool may
// differ from both; the library repairs some names, for one.
func crossCheck(patch []byte, sections []patchSection) ([]*gitdiff.File, error) {
	for i := range sections {
		// The library needs quadratic time for a long name with many spaces. Such a name is refused in stage 3, so the
		// patch is lost anyway, and nothing needs to be parsed.
		if isOverlong(sections[i].name) {
			return make([]*gitdiff.File, len(sections)), nil
		}
	}
	files, preamble, err := gitdiff.Parse(bytes.NewReader(patch))
	if err != nil {
		return nil, malformed(libraryLine(err), "the diff library refuses the patch")
	}
	if preamble != "" || len(files) != len(sections) {
		return nil, malformed(1, "the diff library sees %d sections, not %d", len(files), len(sections))
	}
	for i := range sections {
		s, f := &sections[i], files[i]
		if !s.sameNames(f) || !s.sameModes(f) || len(f.TextFragments) != len(s.hunks) {
			return nil, malformed(s.line, "the diff library reads the names, kind, modes or hunks of this section differently")
		}
	}
	return files, nil
}

// isOverlong reports whether the grammar refuses a name for its length.
func isOverlong(name string) bool {
	if len(name) > maxPath {
		return true
	}
	for c := range strings.SplitSeq(name, "/") {
		if len(c) > maxComponent {
			return true
		}
	}
	return false
}

// libraryLine takes the line number out of a message, and leaves the rest, which quotes the patch, behind.
func libraryLine(err error) int {
	rest, _ := strings.CutPrefix(err.Error(), "gitdiff: line ")
	digits, _, _ := strings.Cut(rest, ":")
	if n, err := strconv.Atoi(digits); err == nil {
		return n
	}
	return 1
}

// sameNames compares names, and with them the kind: the library leaves out the side that does not exist.
func (s *patchSection) sameNames(f *gitdiff.File) bool {
	old, new := s.name, s.name
	switch s.op() {
	case Create:
		old = ""
	case Delete:
		new = ""
	}
	return f.OldName == old && f.NewName == new && f.IsNew == (s.op() == Create) && f.IsDelete == (s.op() == Delete) &&
		!f.IsCopy && !f.IsRename && !f.IsBinary
}

// sameModes knows that the library keeps the last mode that it reads for a side.
func (s *patchSection) sameModes(f *gitdiff.File) bool {
	m := s.modes
	return f.OldMode == fileMode(m.old, m.deleted, m.index) && f.NewMode == fileMode(m.new, m.created)
}

// fileMode returns the last of the modes that is written; scanModes has checked that each is a number.
func fileMode(written ...string) (mode os.FileMode) {
	for _, s := range written {
		if n, err := strconv.ParseUint(s, 8, 32); err == nil {
			mode = os.FileMode(n)
		}
	}
	return mode
}
