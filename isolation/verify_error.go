// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/evoseal/containment/executor"
)

var (
	// ErrUnproven matches every [*VerifyError]: an executor was not proven to hold what is needed.
	ErrUnproven = errors.New("isolation: not proven")
	// ErrHung: a method of the executor does not return, or not soon after its context had ended.
	ErrHung = errors.New("isolation: the executor does not return")
	// ErrPanicked: a method of the executor panicked.
	ErrPanicked = errors.New("isolation: the executor panicked")
	// ErrUnsteady: what the executor says about itself changed.
	ErrUnsteady = errors.New("isolation: the executor changed")
	// ErrTimeout: the time of the verification, or of one of its runs, was over.
	ErrTimeout = errors.New("isolation: verification out of time")
	// ErrRecord: bytes are not the record of a verification.
	ErrRecord = errors.New("isolation: not a record of a verification")
	// ErrStale: a report no longer holds; see [Report.Current].
	ErrStale = errors.New("isolation: the verification no longer holds")
)

// Causes that need no sentinel of their own, since the fields of VerifyError tell them.
var (
	errNil       = errors.New("there is no executor")
	errNoClaim   = errors.New("the executor claims nothing, so there is nothing to prove")
	errUndefined = errors.New("a capability is needed or claimed that nobody has defined")
	errUnclaimed = errors.New("a needed capability is not claimed, so nothing was attacked")
	errSlow      = fmt.Errorf("%w: one run took longer than any attack needs", ErrTimeout)
	errNoStart   = errors.New("the executor fails what every executor must hold, so nothing else was attacked")
)

// VerifyError says what an executor was not proven to hold, and why. It matches [ErrUnproven] and the causes, such as
// [ErrHung], [ErrPanicked], [ErrUnsteady], [ErrTimeout], the context's error and [errors.ErrUnsupported].
type VerifyError struct {
	Executor  string              // the implementation's type
	Unclaimed executor.Capability // needed, and not even promised
	Unproven  executor.Capability // needed and promised, and not proven
	Failed    []Probe             // the probes that are no proof
	Fix       string              // the way out
	Err       error               // what kept the attacks from being made; nil if the probes say all
}

// Error names the capabilities, the first of the probes, the cause and the way out.
func (e *VerifyError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s", ErrUnproven, e.Executor)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Unclaimed != 0 {
		fmt.Fprintf(&b, "; not promised: %v", e.Unclaimed)
	}
	if e.Unproven != 0 {
		fmt.Fprintf(&b, "; promised and not proven: %v", e.Unproven)
	}
	const shown = 5
	made := slices.DeleteFunc(slices.Clone(e.Failed), func(p Probe) bool { return p.Detail == notMade })
	for _, p := range made[:min(len(made), shown)] {
		fmt.Fprintf(&b, "; probe %s: %v: %s", p.Name, p.Result, p.Detail)
	}
	if more := len(made) - shown; more > 0 {
		fmt.Fprintf(&b, "; and %d more probes", more)
	}
	if e.Fix != "" {
		fmt.Fprintf(&b, "; %s", e.Fix)
	}
	return b.String()
}

// Unwrap returns ErrUnproven and the cause.
func (e *VerifyError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrUnproven}
	}
	return []error{ErrUnproven, e.Err}
}

// refusal says why a report proves too little.
func (r Report) refusal(cause error) *VerifyError {
	e := &VerifyError{
		Executor: r.Executor, Unclaimed: r.Claimed.Missing(r.Needs), Failed: r.Failed(), Err: cause,
	}
	e.Unproven = r.Missing() &^ e.Unclaimed
	switch {
	case errors.Is(cause, errNil):
		e.Fix = "pass the executor that its constructor returned, and look at the constructor's error"
	case errors.Is(cause, errors.ErrUnsupported):
		e.Fix = "run the program on Linux"
	case e.Unclaimed != 0:
		e.Fix = "use an executor of a higher tier, or give this one what its documentation asks for"
	case errors.Is(cause, ErrHung), errors.Is(cause, ErrPanicked), errors.Is(cause, ErrUnsteady):
		e.Fix = "repair the executor; until then use another one"
	case errors.Is(cause, ErrTimeout):
		e.Fix = "set a longer Timeout, or make the executor faster"
	case cause == nil && slices.ContainsFunc(e.Failed, func(p Probe) bool { return p.Control == Inconclusive }):
		e.Fix = "an attack must succeed outside first: set TMPDIR to a directory from which programs can be executed"
	}
	return e
}
