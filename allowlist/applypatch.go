// SPDX-License-Identifier: Apache-2.0

package allowlist

const beginHint = "write *** Begin Patch, sections *** Add File: X, *** Update File: X or *** Delete File: X," +
	" *** End Patch, and nothing else"

// ParseApplyPatch turns a patch between "*** Begin Patch" and "*** End Patch" into edits of the files that src holds:
//
//	*** Begin Patch
//	*** Add File: path/to/new
//	+line
//	*** Update File: path/to/file
//	@@ anchor line
//	 context
//	-old
//	+new
//	*** End of File
//	*** Delete File: path/to/old
//	*** End Patch
//
// An added file ends with a newline. An anchor must equal one whole line, once, behind the hunk before. The old lines of
// a hunk (context and removed) must occur exactly once behind that point, byte for byte; a hunk that closes with
// "*** End of File" must reach the end, and may then be without old lines. The final newline of an updated file is kept
// as it was. Moves are not accepted: send a deletion and an addition.
//
// It returns edits, or a *DeniedError: ErrPatchMalformed for the whole patch; a code of the path grammar, or
// ErrConflict, for a section; ErrTooLarge for more than 4 MiB, or for very many hunks on very large files. An error of
// src that is neither fs.ErrNotExist nor a Code is returned wrapped.
func ParseApplyPatch(patch []byte, src Source) ([]Edit, error) {
	if err := tooLong(len(patch)); err != nil {
		return nil, refuseAll(err, beginHint)
	}
	sections, err := scanApplyPatch(patch)
	if err != nil {
		return nil, refuseAll(err, beginHint)
	}
	out, budget := newOutcome(src), newSearchBudget()
	for i := range sections {
		s := &sections[i]
		e, err := s.edit(out, budget)
		if err := out.add(s.op, s.path, e, err); err != nil {
			return nil, err
		}
	}
	return out.result()
}

// beginSection is one file of such a patch.
type beginSection struct {
	line  int
	op    Op
	path  string
	added []byte
	hunks []beginHunk
}

func (s *beginSection) edit(out *parseOutcome, budget *searchBudget) (Edit, error) {
	at := atLine(s.line)
	taken := out.claim(s.path, at)
	if code, why := checkPath(s.path); code != "" {
		return Edit{}, &parseRefusal{code, at, why}
	}
	if taken != nil {
		return Edit{}, taken
	}
	if s.op == Create {
		if err := out.absent(s.path, at); err != nil {
			return Edit{}, err
		}
		return Edit{Op: Create, Path: s.path, Content: s.added}, out.hold(len(s.added), at)
	}
	base, err := out.base(s.path, at)
	if err != nil {
		return Edit{}, err
	}
	e := Edit{Op: s.op, Path: s.path, Base: Sum(base)}
	if s.op == Delete {
		return e, nil
	}
	if e.Content, err = s.update(base, budget); err != nil {
		return Edit{}, err
	}
	return e, out.hold(len(e.Content), at)
}
