// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package scan

import (
	"context"
	"errors"
)

type clock interface{}

// Scan needs Linux.
func Scan(context.Context, int, Options) (*Result, error) { return nil, errors.ErrUnsupported }
