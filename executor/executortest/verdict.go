// SPDX-License-Identifier: Apache-2.0

package executortest

import (
	"errors"
	"fmt"
)

// The two ways in which a check fails. They exclude each other.
var (
	// ErrBreach: the executor does not hold what the case demands. The error is a [*Breach].
	ErrBreach = errors.New("executortest: breach")
	// ErrInconclusive: there is no verdict, because the attack did not get there, the control withstood it, or the run
	// could not be made. Whoever wants a proof must treat it like a breach.
	ErrInconclusive = errors.New("executortest: inconclusive")
)

// Breach says which case an executor failed and what was seen on the host. It matches [ErrBreach].
type Breach struct {
	Case   string
	Detail string

	late bool // the only fault is a time: see confirmed
}

// Error names the case and what was seen.
func (b *Breach) Error() string { return fmt.Sprintf("executortest: breach: %s: %s", b.Case, b.Detail) }

// Is makes the error match [ErrBreach].
func (b *Breach) Is(target error) bool { return target == ErrBreach }

// inconclusive reports that a case reached no verdict, and why.
func inconclusive(name, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %w", ErrInconclusive, name, fmt.Errorf(format, args...))
}
