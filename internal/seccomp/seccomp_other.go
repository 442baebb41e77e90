// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package seccomp

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/net/bpf"
)

// Assemble fails with an error that matches errors.ErrUnsupported: only Linux has these filters.
func Assemble(Options) ([]bpf.RawInstruction, error) {
	return nil, fmt.Errorf("seccomp: no such filters on %s, only on Linux: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Bytes returns nil.
func Bytes([]bpf.RawInstruction) []byte { return nil }
