// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

const gitHint = "write the patch with: git -c core.quotePath=off diff --no-renames --no-ext-diff --no-color" +
	" --src-prefix=a/ --dst-prefix=b/"

// ParsePatch turns a unified patch, as git writes it, into edits of the files that src holds. It accepts one spelling of
// a patch only, so that no other tool can read the same bytes differently:
//
//	git -c core.quotePath=off diff --no-renames --no-ext-diff --no-color --src-prefix=a/ --dst-prefix=b/
//
// Nothing may stand before, between or after the sections. Renames, copies, binary sections, links and changes of mode
// are refused. Hunks apply where their headers say: no fuzz, no offset. Callers who read names from git use -z, because
// git quotes names beyond ASCII elsewhere.
//
// It returns edits, or a *DeniedError that names every section that was refused: ErrPatchMalformed for the whole patch;
// ErrFileType, ErrMode, a code of the path grammar or ErrConflict for a section; ErrTooLarge for more than 4 MiB. An
// error of src that is neither fs.ErrNotExist nor a Code is returned wrapped. ParsePatch knows no policy: Plan judges
// the edits.
func ParsePatch(patch []byte, src Source) ([]Edit, error) {
	if err := tooLong(len(patch)); err != nil {
		return nil, refuseAll(err, gitHint)
	}
	sections, err := scanPatch(patch)
	if err != nil {
		return nil, refuseAll(err, gitHint)
	}
	files, err := crossCheck(patch, sections)
	if err != nil {
		return nil, refuseAll(err, gitHint)
	}
	out := newOutcome(src)
	for i := range sections {
		s := &sections[i]
		e, err := s.edit(files[i], out)
		if err := out.add(s.op(), s.name, e, err); err != nil {
			return nil, err
		}
	}
	return out.result()
}

// edit is stages 3 and 4 for one section.
func (s *patchSection) edit(file *gitdiff.File, out *parseOutcome) (Edit, error) {
	taken := out.claim(s.name, atLine(s.line))
	if err := s.judgeModes(); err != nil {
		return Edit{}, err
	}
	if code, why := checkPath(s.name); code != "" {
		return Edit{}, &parseRefusal{code, atLine(s.line), why}
	}
	if taken != nil {
		return Edit{}, taken
	}
	if file == nil {
		return Edit{}, nil // never leaves the parser: another section has a name that stage 3 refuses
	}
	return s.apply(file, out)
}

// apply is stage 4: the library applies the section to the current bytes.
func (s *patchSection) apply(file *gitdiff.File, out *parseOutcome) (Edit, error) {
	at := atLine(s.line)
	e := Edit{Op: s.op(), Path: s.name}
	var base []byte
	var err error
	if e.Op == Create {
		err = out.absent(s.name, at)
	} else {
		base, err = out.base(s.name, at)
		e.Base = Sum(base)
	}
	if err != nil {
		return Edit{}, err
	}
	content, err := s.patched(base, file)
	if err != nil {
		return Edit{}, err
	}
	if e.Op == Delete {
		if len(content) > 0 {
			return Edit{}, &parseRefusal{ErrConflict, at, "the deletion does not remove every line of the file"}
		}
		return e, nil
	}
	e.Content = content
	return e, out.hold(len(content), at)
}

// patched returns the content after all hunks. It is never nil.
func (s *patchSection) patched(base []byte, file *gitdiff.File) ([]byte, error) {
	if err := s.place(base, file); err != nil {
		return nil, err
	}
	dst := bytes.NewBuffer(make([]byte, 0, len(base)))
	if err := gitdiff.Apply(dst, bytes.NewReader(base), file); err != nil {
		return nil, s.mismatch(err)
	}
	return dst.Bytes(), nil
}

// mismatch says which hunk does not fit, without a word of the library: its messages are free to quote the file.
func (s *patchSection) mismatch(err error) error {
	line, which := s.line, "the patch"
	if at, ok := errors.AsType[*gitdiff.ApplyError](err); ok && 0 < at.Fragment && at.Fragment <= len(s.hunks) {
		line, which = s.hunks[at.Fragment-1].line, fmt.Sprintf("hunk %d", at.Fragment)
	}
	return &parseRefusal{ErrConflict, atLine(line), which + " does not fit the file at the line that it names"}
}
