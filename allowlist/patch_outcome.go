// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

const (
	// maxPatch is the size of a patch in bytes that a parser looks at. It is far above what an edit by a model needs, and
	// keeps the work of every parser bounded.
	maxPatch = 4 << 20
	// maxHeld bounds the bytes that one patch can make a parser hold: a few lines of patch can name a large file.
	maxHeld = 256 << 20
)

// parseRefusal is why a parser refuses a whole patch, or one section of it.
type parseRefusal struct {
	code Code
	at   string // "line 12" or "replacement 3"
	why  string // never a part of a file or a patch
}

func (r *parseRefusal) Error() string {
	if r.at == "" {
		return r.why
	}
	return r.at + ": " + r.why
}

// atLine names a line of a patch, counted from 1.
func atLine(n int) string { return fmt.Sprintf("line %d", n) }

// malformed refuses a whole patch.
func malformed(line int, format string, args ...any) error {
	return &parseRefusal{ErrPatchMalformed, atLine(line), fmt.Sprintf(format, args...)}
}

// tooLong refuses an input before anything of it is read.
func tooLong(size int) error {
	if size <= maxPatch {
		return nil
	}
	return &parseRefusal{code: ErrTooLarge, why: fmt.Sprintf("the input has %d bytes, more than %d", size, maxPatch)}
}

// refuseAll turns the refusal of a whole patch into the error that a parser returns.
func refuseAll(err error, hint string) error {
	var r *parseRefusal
	if !errors.As(err, &r) {
		return err
	}
	if r.code == ErrTooLarge {
		hint = "send the change in smaller pieces"
	}
	return denied([]Decision{{Code: r.code, Detail: r.Error(), Hint: hint}})
}

// parseOutcome gathers what a parser makes of its sections. All of them are looked at, so that a generator can mend
// everything in one round; a single denial is enough for no edit to leave the parser.
type parseOutcome struct {
	src     Source
	edits   []Edit
	denials []Decision
	seen    map[string]bool
	held    int
}

func newOutcome(src Source) *parseOutcome { return &parseOutcome{src: src, seen: map[string]bool{}} }

// claim refuses a second section for one path. The first counts even if it was refused itself.
func (o *parseOutcome) claim(path, at string) error {
	if o.seen[path] {
		return &parseRefusal{ErrConflict, at, "a second section for one path"}
	}
	o.seen[path] = true
	return nil
}

// add takes the edit of a section, or the refusal of it. Any other error ends the parsing: it is no verdict.
func (o *parseOutcome) add(op Op, path string, e Edit, err error) error {
	var r *parseRefusal
	switch {
	case err == nil:
		o.edits = append(o.edits, e)
	case errors.As(err, &r):
		o.denials = append(o.denials, Decision{Op: op, Path: path, Code: r.code, Detail: r.Error(), Hint: parseHint(r.code)})
	default:
		return fmt.Errorf("allowlist: parse the edit of %+q: %w", path, err)
	}
	return nil
}

func (o *parseOutcome) result() ([]Edit, error) {
	if err := denied(o.denials); err != nil {
		return nil, err
	}
	return o.edits, nil
}

// base reads the file that an edit is made for.
func (o *parseOutcome) base(path, at string) ([]byte, error) {
	content, err := o.src.ReadFile(path)
	switch {
	case err == nil:
		return content, o.hold(len(content), at)
	case isMissing(err):
		return nil, &parseRefusal{ErrConflict, at, "there is no such file"}
	}
	// A tree answers with a code where it will not follow a path: that is a verdict.
	if code, ok := errors.AsType[Code](err); ok {
		return nil, &parseRefusal{code, at, "the file cannot be read for this edit"}
	}
	return nil, err
}

// absent refuses to create what exists. Where the source gives a verdict on the way to the path, the edit goes on to
// Plan, which asks the policy first and then comes to the same verdict: a Create takes nothing from what it found.
func (o *parseOutcome) absent(path, at string) error {
	_, err := o.src.ReadFile(path)
	if err == nil {
		return &parseRefusal{ErrConflict, at, "the file to create exists"}
	}
	if _, verdict := errors.AsType[Code](err); verdict || isMissing(err) {
		return nil
	}
	return err
}

// hold accounts for bytes that stay in memory until the parser returns.
func (o *parseOutcome) hold(n int, at string) error {
	o.held += n
	if o.held > maxHeld {
		return &parseRefusal{ErrTooLarge, at, fmt.Sprintf("the files of this patch have more than %d bytes together", maxHeld)}
	}
	return nil
}

// isMissing also knows a path below a file, for which a plain read does not say fs.ErrNotExist.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// parseHint is what a generator can do about the refusal of one section.
func parseHint(code Code) string {
	switch code {
	case ErrConflict:
		return "read the file again, and send one edit that fits its present content exactly"
	case ErrMode:
		return "leave modes alone: new files are 100644, and no edit changes a mode"
	case ErrFileType:
		return "only regular files can be edited"
	case ErrTooLarge:
		return "send the change in smaller pieces"
	case ErrPathInvalid, ErrPathEscapes, ErrPathDisguised:
		return "write the path relative to the root, with plain components and single slashes"
	}
	return ""
}
