// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package reexec

import (
	"errors"
	"fmt"
	"os"
)

// FirstFD is the descriptor number of the first of the files given to [Start].
const FirstFD = 4

// Register does nothing: there are no stages on this system.
func Register(string, func([]byte) int) {}

// Start fails with [errors.ErrUnsupported].
func Start(string, []byte, []*os.File) (*os.Process, error) {
	return nil, fmt.Errorf("reexec: stages need Linux: %w", errors.ErrUnsupported)
}
