// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package rlimit

import (
	"context"
	"runtime"

	"github.com/evoseal/containment/executor"
)

// Executor runs commands in tier 1. It exists on Linux only.
type Executor struct{}

var errLinux = &executor.UnsupportedError{
	Executor: "rlimit", Reason: "it needs Linux and this is " + runtime.GOOS, Fix: "run the program in a Linux machine",
}

// New fails with [executor.ErrUnsupported].
func New(context.Context, Config) (*Executor, error) { return nil, errLinux }

// Capabilities promises nothing.
func (*Executor) Capabilities() executor.Capability { return 0 }

// Run fails with [executor.ErrUnsupported].
func (*Executor) Run(context.Context, executor.Spec) (*executor.Result, error) { return nil, errLinux }

// Close does nothing.
func (*Executor) Close() error { return nil }

// Fingerprint is empty: there is nothing to tell.
func (*Executor) Fingerprint() string { return "" }
