// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rlimit_test

import (
	"context"
	"flag"
	"testing"

	"github.com/evoseal/containment/executor/internal/runtest"
	"github.com/evoseal/containment/executor/rlimit"
	"github.com/evoseal/containment/internal/testenv"
)

var (
	stressRuns  = flag.Int("stress.runs", 200, "runs in TestNothingIsLeft; make stress uses more")
	stressKills = flag.Int("stress.kills", 10, "host programs killed in TestHostKilled; make stress uses 200")
)

func open(ctx context.Context, state string) (runtest.Executor, error) {
	return rlimit.New(ctx, rlimit.Config{StateDir: state})
}

func TestNothingIsLeft(t *testing.T) {
	state := runtest.StateDir(t)
	ex := newExecutor(t, rlimit.Config{StateDir: state})
	runtest.NothingIsLeft(t, ex, state, *stressRuns)
}

// Executors that know nothing of each other have the same uids.
func TestUIDsAreTheMachines(t *testing.T) {
	testenv.Need(t, "root")
	runtest.TwoStates(t, func(ctx context.Context, state string) (runtest.Executor, error) {
		return rlimit.New(ctx, rlimit.Config{StateDir: state, FirstUID: runtest.FewUIDs, UIDs: 16})
	})
}

func TestHostKilled(t *testing.T) { runtest.HostKilled(t, open, *stressKills) }

func TestTreeAtTheDeadline(t *testing.T) {
	state := runtest.StateDir(t)
	runtest.TreeAtTheDeadline(t, newExecutor(t, rlimit.Config{StateDir: state}), state)
}

func TestOutputCostsNoMemory(t *testing.T) {
	runtest.OutputCostsNoMemory(t, newExecutor(t, rlimit.Config{}))
}
