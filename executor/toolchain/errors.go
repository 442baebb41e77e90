// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"errors"
	"fmt"
	"strings"
)

// The sentinels of this package. What is not installed matches [executor.ErrUnsupported].
var (
	// ErrConflict: a specification sets what the toolchain must set otherwise. The error is a [*ConflictError].
	ErrConflict = errors.New("toolchain: conflict with the specification")
	// ErrSeed: a seed cannot be made or cannot be trusted. The error is a [*SeedError].
	ErrSeed = errors.New("toolchain: no usable seed")
	// ErrConfig: a configuration has a fault. The error names the field and the rule.
	ErrConfig = errors.New("toolchain: invalid configuration")
)

// Conflict is one thing that a toolchain and a specification want differently.
type Conflict struct {
	Field string // such as `Env["GOPROXY"]` or `Mounts["/usr/local/go"]`, by name of the variable or by target
	Rule  string // what must hold
}

// Error names the field and the rule.
func (c Conflict) Error() string { return c.Field + ": " + c.Rule }

// ConflictError lists every conflict. It matches [ErrConflict].
type ConflictError struct {
	Toolchain string
	Conflicts []Conflict
}

// Error lists all conflicts.
func (e *ConflictError) Error() string {
	texts := make([]string, len(e.Conflicts))
	for i, c := range e.Conflicts {
		texts[i] = c.Error()
	}
	return fmt.Sprintf("toolchain: %s: conflict with the specification: %s", e.Toolchain, strings.Join(texts, "; "))
}

// Is makes the error match [ErrConflict].
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// Unwrap returns the conflicts.
func (e *ConflictError) Unwrap() []error {
	errs := make([]error, len(e.Conflicts))
	for i, c := range e.Conflicts {
		errs[i] = c
	}
	return errs
}

// SeedError says why a seed cannot be made or trusted. It matches [ErrSeed].
type SeedError struct {
	Path string // what is at fault
	Rule string // what must hold
	Fix  string // the way out
	Err  error  // the cause, if there is one
}

// Error names path, rule, cause and the way out.
func (e *SeedError) Error() string {
	text := fmt.Sprintf("toolchain: seed: %s: %s", e.Path, e.Rule)
	if e.Err != nil {
		text += fmt.Sprintf(": %v", e.Err)
	}
	if e.Fix != "" {
		text += "; " + e.Fix
	}
	return text
}

// Is makes the error match [ErrSeed].
func (e *SeedError) Is(target error) bool { return target == ErrSeed }

// Unwrap returns the cause.
func (e *SeedError) Unwrap() error { return e.Err }
