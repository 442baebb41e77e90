// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Code says why an edit was denied. Each code is its own sentinel: errors.Is(err, ErrProtected) finds one denial among
// many.
type Code string

// The codes. They are stable.
const (
	ErrPathInvalid      Code = "path_invalid"
	ErrPathEscapes      Code = "path_escapes"
	ErrPathDisguised    Code = "path_disguised"
	ErrProtected        Code = "protected"
	ErrOutsideSurface   Code = "outside_surface"
	ErrOpNotAllowed     Code = "op_not_allowed"
	ErrConflict         Code = "conflict"
	ErrCaseCollision    Code = "case_collision"
	ErrTooLarge         Code = "too_large"
	ErrSymlink          Code = "symlink"
	ErrHardLink         Code = "hard_link"
	ErrFileType         Code = "file_type"
	ErrMode             Code = "mode"
	ErrNestedRepository Code = "nested_repository"
	ErrPatchMalformed   Code = "patch_malformed"
	ErrOutsideRegion    Code = "outside_region"
	ErrDirective        Code = "directive"
)

// Error makes a code an error.
func (c Code) Error() string { return string(c) }

// Rule is the rule that decided.
type Rule struct {
	Pattern string
	Class   string // of a default rule: core, exec, deps, tool, opaque
	Source  string // such as "policy.yaml:14" or "default:exec"
	Reason  string
}

// Decision is the verdict on one edit, or on a set if Path is empty. The zero value is a denial.
type Decision struct {
	Allowed bool
	Op      Op
	Path    string // as it was given; print it with %+q
	Code    Code   // empty when allowed
	Rule    Rule   // the rule that decided; zero for grammar and default deny
	Detail  string // never file content
	Hint    string // one sentence that a generator can act on, never the whole policy
}

// String is the decision on one line.
func (d Decision) String() string {
	if d.Allowed {
		return fmt.Sprintf("%v %+q: allowed by %s", d.Op, d.Path, d.Rule.Source)
	}
	var b strings.Builder
	if d.Op == 0 && d.Path == "" {
		fmt.Fprintf(&b, "the set: %s", d.Code) // no edit by itself
	} else {
		fmt.Fprintf(&b, "%v %+q: %s", d.Op, d.Path, d.Code)
	}
	if d.Rule != (Rule{}) {
		fmt.Fprintf(&b, " (rule %q, %s)", d.Rule.Pattern, d.Rule.Source)
	}
	if d.Detail != "" {
		fmt.Fprintf(&b, ": %s", d.Detail)
	}
	if d.Hint != "" {
		fmt.Fprintf(&b, "; %s", d.Hint)
	}
	return b.String()
}

// DeniedError holds every denial, sorted by path, then code. Nothing was written.
type DeniedError struct {
	Decisions []Decision
}

// maxPrinted is the number of denials that Error prints.
const maxPrinted = 20

// Error lists at most 20 denials.
func (e *DeniedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "allowlist: %d denied", len(e.Decisions))
	for i, d := range e.Decisions {
		if i == maxPrinted {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Decisions)-maxPrinted)
			break
		}
		b.WriteString("\n  " + d.String())
	}
	return b.String()
}

// Unwrap returns the codes, one for each denial.
func (e *DeniedError) Unwrap() []error {
	errs := make([]error, len(e.Decisions))
	for i, d := range e.Decisions {
		errs[i] = d.Code
	}
	return errs
}

// denied returns an error for the denials among the decisions, or nil if there is none.
func denied(decisions []Decision) error {
	denials := slices.DeleteFunc(slices.Clone(decisions), func(d Decision) bool { return d.Allowed })
	if len(denials) == 0 {
		return nil
	}
	slices.SortStableFunc(denials, func(a, b Decision) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Code, b.Code))
	})
	return &DeniedError{Decisions: denials}
}
