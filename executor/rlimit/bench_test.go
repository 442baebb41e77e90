// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rlimit_test

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/internal/runtest"
	"github.com/evoseal/containment/executor/rlimit"
	"github.com/evoseal/containment/internal/testenv"
)

// defaultExecutor is what a user gets who configures nothing: its state is in memory where the host has a place for that.
func defaultExecutor(b *testing.B) *rlimit.Executor {
	b.Helper()
	ex, err := rlimit.New(b.Context(), rlimit.Config{})
	return closeLater(b, ex, err)
}

// peer does by command line what a run does about ids and four of its limits, and nothing else.
func peer() *exec.Cmd {
	return exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs",
		"prlimit", "--core=0", "--nofile=1024", "--fsize=268435456", "--cpu=60", "/bin/true")
}

// BenchmarkTrue measures one run of /bin/true beside the peer, interleaved in the same loop, and reports the medians.
func BenchmarkTrue(b *testing.B) {
	testenv.Need(b, "root")
	testenv.Need(b, "setpriv")
	ex := defaultExecutor(b)
	spec := executor.Spec{Args: []string{"/bin/true"}, Workspace: b.TempDir()}
	runtest.BesidePeer(b, func() error { return runTrue(b, ex, spec) }, func() error { return peer().Run() })
}

func runTrue(b *testing.B, ex executor.Executor, spec executor.Spec) error {
	r, err := ex.Run(b.Context(), spec)
	if err == nil && !r.OK() {
		err = fmt.Errorf("cause %v", r.Cause)
	}
	return err
}

// BenchmarkThroughput keeps one or two runs under way, and the same number of the peer's.
func BenchmarkThroughput(b *testing.B) {
	testenv.Need(b, "root")
	testenv.Need(b, "setpriv")
	ex := defaultExecutor(b)
	spec := executor.Spec{Args: []string{"/bin/true"}, Workspace: b.TempDir()}
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("ours/workers=%d", workers), func(b *testing.B) {
			runtest.Throughput(b, workers, func() func() error {
				return func() error { return runTrue(b, ex, spec) }
			})
		})
		b.Run(fmt.Sprintf("peer/workers=%d", workers), func(b *testing.B) {
			runtest.Throughput(b, workers, func() func() error { return func() error { return peer().Run() } })
		})
	}
}

func BenchmarkTreeAtTheDeadline(b *testing.B) {
	runtest.BenchmarkTreeAtTheDeadline(b, defaultExecutor(b))
}
