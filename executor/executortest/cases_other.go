// SPDX-License-Identifier: Apache-2.0

//go:build !linux || !(amd64 || arm64 || riscv64 || loong64)

package executortest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/evoseal/containment/executor"
)

// The attacks are made of Linux system calls, by number, and verdicts are read from /proc: elsewhere there is nothing to
// run, and Run says so instead of passing.
const supervisorKill = "supervisor-kill"

func cases() []Case { return nil }

func keepTemplate() func() { return func() {} }

func supervised(*testing.T, func(*testing.T) executor.Executor) bool { return false }

func refusal(c Case) func(context.Context, executor.Executor) error {
	return func(context.Context, executor.Executor) error {
		return inconclusive(c.Name, "the suite needs Linux on a 64 bit machine: %w", errors.ErrUnsupported)
	}
}

func judgeSupervisorKill(t *testing.T, _ func(*testing.T) executor.Executor) {
	t.Fatal(fmt.Errorf("executortest: the suite needs Linux on a 64 bit machine: %w", errors.ErrUnsupported))
}
