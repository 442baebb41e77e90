// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"errors"
	"fmt"
)

// The two ways in which a check fails. They exclude each other.
var (
	// ErrBreach: the store does not hold what the case demands. The error is a [*Breach].
	ErrBreach = errors.New("rollbacktest: breach")
	// ErrInconclusive: there is no verdict, because the case could not be set up. Whoever wants a proof must treat it like
	// a breach.
	ErrInconclusive = errors.New("rollbacktest: inconclusive")
)

// Breach says which case a store failed and what was seen. It matches [ErrBreach].
type Breach struct {
	Case   string // its ID
	Detail string
}

// Error names the case and what was seen.
func (b *Breach) Error() string { return fmt.Sprintf("rollbacktest: breach: %s: %s", b.Case, b.Detail) }

// Is makes the error match [ErrBreach].
func (b *Breach) Is(target error) bool { return target == ErrBreach }

// inconclusive reports that a case reached no verdict, and why.
func inconclusive(id string, err error) error {
	return fmt.Errorf("%w: %s: %w", ErrInconclusive, id, err)
}
