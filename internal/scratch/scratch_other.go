// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package scratch

import (
	"context"
	"errors"
	"fmt"
)

var errOther = fmt.Errorf("scratch: private copies need Linux: %w", errors.ErrUnsupported)

// Copy needs Linux.
func Copy(context.Context, string, string, Options) (Stats, error) { return Stats{}, errOther }

// Remove needs Linux.
func Remove(context.Context, string) error { return errOther }
