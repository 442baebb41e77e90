// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package scratch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

var errOther = fmt.Errorf("scratch: private copies need Linux: %w", errors.ErrUnsupported)

// Copy needs Linux.
func Copy(context.Context, string, string, Options) (Stats, error) { return Stats{}, errOther }

// Pack needs Linux.
func Pack(context.Context, string, io.Writer, Options) (Stats, error) { return Stats{}, errOther }

// Unpack needs Linux.
func Unpack(io.Reader, *os.File, UnpackOptions) error { return errOther }

// Remove needs Linux.
func Remove(context.Context, string) error { return errOther }
