// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rlimit_test

import (
	"os"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/executortest"
	"github.com/evoseal/containment/executor/internal/runtest"
	"github.com/evoseal/containment/executor/rlimit"
)

func newExecutor(t testing.TB, c rlimit.Config) *rlimit.Executor {
	t.Helper()
	if c.StateDir == "" {
		c.StateDir = runtest.StateDir(t)
	}
	ex, err := rlimit.New(t.Context(), c)
	return closeLater(t, ex, err)
}

// closeLater fails the test if there is no executor, and closes it at the end.
func closeLater(t testing.TB, ex *rlimit.Executor, err error) *rlimit.Executor {
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
// hold by the other means. An ordinary caller has neither cgroups nor mounts here, so that only Landlock can be missing.
// Where they differ in one thing, what that has no part in is not asked again.
func TestConformance(t *testing.T) {
	root := os.Getuid() == 0
	const (
		sockets = executor.NetworkOff | executor.SyscallsFiltered
		files   = executor.WorkspaceIsolated | executor.ProtectedReadOnly | executor.HostFilesHidden
		reach   = files | executor.HostEnvHidden | executor.UnprivilegedUser // what Landlock has a part in
		sums    = executor.TreeKilled | executor.OutputBounded | executor.MemoryBounded | executor.ProcessesBounded |
			executor.CPUBounded | executor.DiskBounded
	)
	for _, tc := range []struct {
		name              string
		cgroups, landlock bool
		config            rlimit.Config
		differs           executor.Capability // 0: this is the first arrangement
		basics            bool
		run               bool
	}{
		{name: "all", run: true},
		{name: "without landlock", landlock: true, differs: reach | sockets, run: true},
		{name: "without cgroups", cgroups: true, differs: sums, basics: true, run: root},
		// What differs here is on the host's side and has no concurrency of its own.
		{
			name: "on disk", config: rlimit.Config{DiskScratch: true}, differs: files | executor.DiskBounded, basics: true,
			run: root && !race,
		},
		{name: "with sockets", config: rlimit.Config{Sockets: rlimit.SocketsAll}, differs: sockets, run: !race},
	} {
		if !tc.run {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			ex, err := rlimit.Without(t.Context(), tc.config, tc.cgroups, tc.landlock, false)
			closeLater(t, ex, err)
			one := func(*testing.T) executor.Executor { return ex } // for all of them, as a program has it
			if tc.differs == 0 {
				executortest.Run(t, one)
			} else {
				executortest.RunAgain(t, tc.differs, tc.basics, one)
			}
		})
	}
	// The last case kills a host program; what that leaves is for the next one to remove.
	ex, err := rlimit.New(t.Context(), rlimit.Config{})
	closeLater(t, ex, err)
}

func BenchmarkConformance(b *testing.B) {
	executortest.Benchmark(b, func(b *testing.B) executor.Executor { return defaultExecutor(b) })
}
