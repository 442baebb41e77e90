// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// The sentinels of this package.
var (
	// ErrUnsupported: this host, this caller or this executor cannot do what was asked, and nothing was started. It also
	// matches [errors.ErrUnsupported]. The error is an [*UnsupportedError].
	ErrUnsupported error = unsupported{}
	// ErrInvalidSpec: the specification has faults, and nothing was started. The error is a [*SpecError].
	ErrInvalidSpec = errors.New("executor: invalid specification")
	// ErrLost: the run started and its end could not be observed. There is no verdict.
	ErrLost = errors.New("executor: run lost")
	// ErrClosed: the executor was closed.
	ErrClosed = errors.New("executor: closed")
)

type unsupported struct{}

func (unsupported) Error() string        { return "executor: not supported here" }
func (unsupported) Is(target error) bool { return target == errors.ErrUnsupported }

// UnsupportedError says what is missing, why, and what would change that.
type UnsupportedError struct {
	Executor string     // name of the implementation
	Missing  Capability // what was required and is not promised; 0 if the executor cannot be built at all
	Reason   string
	Fix      string
	Err      error // the cause, if there is one
}

// Error names the reason and the way out.
func (e *UnsupportedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: not supported here: %s", cmp.Or(e.Executor, "executor"), e.Reason)
	if e.Missing != 0 {
		fmt.Fprintf(&b, " (missing %s)", e.Missing)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Fix != "" {
		fmt.Fprintf(&b, "; %s", e.Fix)
	}
	return b.String()
}

// Is makes the error match [ErrUnsupported] and [errors.ErrUnsupported].
func (e *UnsupportedError) Is(target error) bool {
	return target == ErrUnsupported || target == errors.ErrUnsupported
}

// Unwrap returns the cause.
func (e *UnsupportedError) Unwrap() error { return e.Err }

// Fault is one mistake in a specification.
type Fault struct {
	Field string // such as `Env["A=B"]`
	Rule  string // what must hold
}

// Error names the field and the rule.
func (f Fault) Error() string { return f.Field + ": " + f.Rule }

// SpecError lists every fault of a specification. It matches [ErrInvalidSpec].
type SpecError struct {
	Faults []Fault
}

// Error lists all faults.
func (e *SpecError) Error() string {
	texts := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		texts[i] = f.Error()
	}
	return fmt.Sprintf("executor: invalid specification: %s", strings.Join(texts, "; "))
}

// Is makes the error match [ErrInvalidSpec].
func (e *SpecError) Is(target error) bool { return target == ErrInvalidSpec }

// Unwrap returns the faults.
func (e *SpecError) Unwrap() []error {
	errs := make([]error, len(e.Faults))
	for i, f := range e.Faults {
		errs[i] = f
	}
	return errs
}

// SetupError says that the payload was not started because a step of the set-up failed. Nothing is left behind.
type SetupError struct {
	Step string // such as "workspace", "mount", "exec"
	Err  error
}

// Error names the step and the cause.
func (e *SetupError) Error() string { return fmt.Sprintf("executor: set-up: %s: %v", e.Step, e.Err) }

// Unwrap returns the cause.
func (e *SetupError) Unwrap() error { return e.Err }

// CleanupError lists what could not be removed after a run. The next start-up sweep tries again.
type CleanupError struct {
	Remains []error
}

// Error lists everything that remains.
func (e *CleanupError) Error() string {
	texts := make([]string, len(e.Remains))
	for i, err := range e.Remains {
		texts[i] = err.Error()
	}
	return "executor: clean-up left something behind: " + strings.Join(texts, "; ")
}

// Unwrap returns the failures.
func (e *CleanupError) Unwrap() []error { return e.Remains }
