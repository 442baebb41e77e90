// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"errors"
	"fmt"
	"strings"
)

// The sentinels of this package; errors.Is finds them.
var (
	// ErrDenied matches every [*DenyError]: the tier that is required is not available and proven here, or a person has
	// to approve first. Nothing has run.
	ErrDenied = errors.New("isolation: denied")
	// ErrTreeUnknown: nobody can tell what is in the tree. Nothing starts until an operator decides.
	ErrTreeUnknown = errors.New("isolation: the state of the tree is unknown")
	// ErrClosed: the boundary or the log was closed, or never opened.
	ErrClosed = errors.New("isolation: closed")
	// ErrConfig: the configuration has faults; all of them are named.
	ErrConfig = errors.New("isolation: configuration refused")
	// ErrName: a text is not the name of a value.
	ErrName = errors.New("isolation: unknown name")
	// ErrPermit: an override, an approval or a clear does not hold. The error is a [*PermitError].
	ErrPermit = errors.New("isolation: permit refused")
	// ErrLog: the decision log could not be read or written. Without a log there is no decision.
	ErrLog = errors.New("isolation: decision log")
	// ErrRejected: a judge has a reason against a variant. The error is a [*RejectError].
	ErrRejected = errors.New("isolation: variant rejected")
	// ErrNoResult: the run left no report that can be believed. The error is a [*RejectError], so it matches ErrRejected
	// as well.
	ErrNoResult = errors.New("isolation: no usable test report")
)

// DenyError says why there is no boundary: what was decided, what was seen, what the attacks found, and everything that
// is missing. It matches [ErrDenied] and each of the reasons in Missing.
type DenyError struct {
	Decision Decision // what the rules ask for
	Required Tier     // with Config.MinTier, what was latched, and the override; never below the decision without one
	Observed Observed
	Reports  []Report // the verifications that were made, in the order of the candidates
	Missing  []error  // each names what is missing and the way out
}

// Error names the required tier, the triggers that fired, and everything that is missing, one on a line.
func (e *DenyError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: tier %v (%s) is required", ErrDenied, e.Required, e.Required.Level())
	for i, f := range e.Decision.Fired {
		sep := ", "
		if i == 0 {
			sep = " by "
		}
		fmt.Fprintf(&b, "%s%v (%v: %s)", sep, f.Trigger, f.Fact, f.Value)
	}
	for _, m := range e.Missing {
		fmt.Fprintf(&b, "\n  %v", m)
	}
	return b.String()
}

// Unwrap returns ErrDenied and what is missing.
func (e *DenyError) Unwrap() []error { return append([]error{ErrDenied}, e.Missing...) }
