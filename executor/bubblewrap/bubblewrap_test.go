// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bubblewrap_test

import (
	"os"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/bubblewrap"
	"github.com/evoseal/containment/executor/executortest"
	"github.com/evoseal/containment/executor/internal/runtest"
)

func newExecutor(t testing.TB, c bubblewrap.Config) *bubblewrap.Executor {
	t.Helper()
	if c.StateDir == "" {
		c.StateDir = runtest.StateDir(t)
	}
	ex, err := bubblewrap.New(t.Context(), c)
	return closeLater(t, ex, err)
}

// closeLater fails the test if there is no executor, and closes it at the end.
func closeLater(t testing.TB, ex *bubblewrap.Executor, err error) *bubblewrap.Executor {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ex.Close(); err != nil {
			t.Error(err)
		}
	})
	return ex
}

// The suite runs over what this host has, and over hosts that lack a part of it: whatever is then still promised must
// hold by the other means. An ordinary caller has neither cgroups nor mounts here. What these have no part in, as the
// network, is not asked again without them.
func TestConformance(t *testing.T) {
	root := os.Getuid() == 0
	const differs = executor.TreeKilled | executor.OutputBounded | executor.MemoryBounded | executor.ProcessesBounded |
		executor.CPUBounded | executor.DiskBounded | executor.WorkspaceIsolated | executor.ProtectedReadOnly |
		executor.HostFilesHidden
	for _, tc := range []struct {
		name            string
		cgroups, mounts bool
		run             bool
	}{
		{name: "all", run: true},
		{name: "without cgroups and mounts", cgroups: true, mounts: true, run: root && !race},
	} {
		if !tc.run {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			ex, err := bubblewrap.Without(t.Context(), bubblewrap.Config{}, tc.cgroups, tc.mounts)
			closeLater(t, ex, err)
			one := func(*testing.T) executor.Executor { return ex } // for all of them, as a program has it
			if tc.cgroups || tc.mounts {
				executortest.RunAgain(t, differs, true, one)
			} else {
				executortest.Run(t, one)
			}
		})
	}
	// The last case kills a host program; what that leaves is for the next one to remove.
	ex, err := bubblewrap.New(t.Context(), bubblewrap.Config{})
	closeLater(t, ex, err)
}

func BenchmarkConformance(b *testing.B) {
	executortest.Benchmark(b, func(b *testing.B) executor.Executor { return defaultExecutor(b) })
}
