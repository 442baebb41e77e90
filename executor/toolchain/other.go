// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package toolchain

import (
	"context"
	"runtime"

	"github.com/evoseal/containment/executor"
)

func unsupportedSystem() error {
	return &executor.UnsupportedError{
		Executor: "toolchain", Reason: "runs of the executors need Linux, and this is " + runtime.GOOS, Fix: "use Linux",
	}
}

// Go is not supported on this system.
func Go(context.Context, GoConfig) (*Toolchain, error) { return nil, unsupportedSystem() }

// Seed is not supported on this system.
func Seed(context.Context, GoConfig) (string, error) { return "", unsupportedSystem() }

// Python is not supported on this system.
func Python(context.Context, PythonConfig) (*Toolchain, error) { return nil, unsupportedSystem() }

// Node is not supported on this system.
func Node(context.Context, NodeConfig) (*Toolchain, error) { return nil, unsupportedSystem() }

func checkSeed(string) error { return unsupportedSystem() }
