// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package testenv

import (
	"errors"
	"fmt"
	"runtime"
)

// errNotLinux is the answer of every probe of a kernel facility that only Linux has.
var errNotLinux = fmt.Errorf("needs Linux, this is %s: %w", runtime.GOOS, errors.ErrUnsupported)

func probeLandlock() error   { return errNotLinux }
func probeSeccomp() error    { return errNotLinux }
func probeUserns() error     { return errNotLinux }
func probeBubblewrap() error { return errNotLinux }
func probeCgroup() error     { return errNotLinux }
func probeTmpfsMount() error { return errNotLinux }
func probeLoop() error       { return errNotLinux }
func probeLoopMount() error  { return errNotLinux }
func probeReflink() error    { return errNotLinux }
