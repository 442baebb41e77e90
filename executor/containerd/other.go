// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package containerd

import (
	"context"
	"runtime"

	"github.com/evoseal/containment/executor"
)

// Executor runs commands in tier 2. It exists on Linux only.
type Executor struct{}

// Daemon is a private daemon. It exists on Linux only.
type Daemon struct{}

var errLinux = &executor.UnsupportedError{
	Executor: "containerd", Reason: "it needs Linux and this is " + runtime.GOOS, Fix: "run the program in a Linux machine",
}

// New fails with [executor.ErrUnsupported].
func New(context.Context, Config) (*Executor, error) { return nil, errLinux }

// Capabilities promises nothing.
func (*Executor) Capabilities() executor.Capability { return 0 }

// Run fails with [executor.ErrUnsupported].
func (*Executor) Run(context.Context, executor.Spec) (*executor.Result, error) { return nil, errLinux }

// Fingerprint names nothing.
func (*Executor) Fingerprint() string { return "" }

// Close does nothing.
func (*Executor) Close() error { return nil }

// StartDaemon fails with [executor.ErrUnsupported].
func StartDaemon(context.Context, DaemonConfig) (*Daemon, error) { return nil, errLinux }

// Socket names nothing.
func (*Daemon) Socket() string { return "" }

// Close does nothing.
func (*Daemon) Close() error { return nil }
