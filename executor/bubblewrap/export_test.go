// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bubblewrap

import (
	"context"
	"os"
	"testing"

	"github.com/evoseal/containment/executor/internal/hostrun"
	"github.com/evoseal/containment/internal/reexec"
	"github.com/evoseal/containment/internal/seccomp"
)

// Without is like New on a host that lacks some of what this one has.
func Without(ctx context.Context, c Config, cgroups, mounts bool) (*Executor, error) {
	return newExecutor(ctx, c, hostrun.Lacks{Cgroups: cgroups, Mounts: mounts})
}

// FilterFile returns the filter of the runs as bwrap --seccomp takes it.
func FilterFile(t testing.TB) *os.File {
	t.Helper()
	prog, err := seccomp.Assemble(filterOptions(true))
	if err != nil {
		t.Fatal(err)
	}
	f, err := reexec.Sealed(seccomp.Bytes(prog))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
