// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rlimit_test

import (
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/executortest"
	"github.com/evoseal/containment/executor/rlimit"
)

func newExecutor(t testing.TB, c rlimit.Config) *rlimit.Executor {
	t.Helper()
	if c.StateDir == "" {
		c.StateDir = stateDir(t)
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
// hold by the other means.
func TestConformance(t *testing.T) {
	for _, tc := range []struct {
		name                      string
		cgroups, landlock, mounts bool
		config                    rlimit.Config
	}{
		{name: "all"},
		{name: "without cgroups", cgroups: true},
		{name: "without landlock", landlock: true},
		{name: "without mounts", mounts: true},
		{name: "on disk", config: rlimit.Config{DiskScratch: true}},
		{name: "with sockets", config: rlimit.Config{Sockets: rlimit.SocketsAll}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			executortest.Run(t, func(t *testing.T) executor.Executor {
				tc.config.StateDir = stateDir(t)
				ex, err := rlimit.Without(t.Context(), tc.config, tc.cgroups, tc.landlock, tc.mounts)
				return closeLater(t, ex, err)
			})
		})
	}
}

func BenchmarkConformance(b *testing.B) {
	executortest.Benchmark(b, func(b *testing.B) executor.Executor { return defaultExecutor(b) })
}
