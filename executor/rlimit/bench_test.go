// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rlimit_test

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
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
	var ours, theirs []time.Duration
	for b.Loop() {
		start := time.Now()
		if r, err := ex.Run(b.Context(), spec); err != nil || !r.OK() {
			b.Fatal(r, err)
		}
		ours = append(ours, time.Since(start))
		start = time.Now()
		if err := peer().Run(); err != nil {
			b.Fatal(err)
		}
		theirs = append(theirs, time.Since(start))
	}
	o, p := median(ours), median(theirs)
	b.ReportMetric(float64(o.Microseconds())/1000, "ours-ms")
	b.ReportMetric(float64(p.Microseconds())/1000, "peer-ms")
	b.ReportMetric(float64(o)/float64(p), "ratio")
	b.ReportMetric(0, "ns/op")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkThroughput keeps one or two runs under way, and the same number of the peer's.
func BenchmarkThroughput(b *testing.B) {
	testenv.Need(b, "root")
	testenv.Need(b, "setpriv")
	ex := defaultExecutor(b)
	spec := executor.Spec{Args: []string{"/bin/true"}, Workspace: b.TempDir()}
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("ours/workers=%d", workers), func(b *testing.B) {
			throughput(b, workers, func() error {
				r, err := ex.Run(b.Context(), spec)
				if err == nil && !r.OK() {
					err = fmt.Errorf("cause %v", r.Cause)
				}
				return err
			})
		})
		b.Run(fmt.Sprintf("peer/workers=%d", workers), func(b *testing.B) {
			throughput(b, workers, func() error { return peer().Run() })
		})
	}
}

func throughput(b *testing.B, workers int, run func() error) {
	start, n := time.Now(), 0
	done := make(chan error, workers)
	flying := 0
	for b.Loop() {
		if flying == workers {
			if err := <-done; err != nil {
				b.Fatal(err)
			}
			flying--
		}
		go func() { done <- run() }()
		flying++
		n++
	}
	for ; flying > 0; flying-- {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/time.Since(start).Seconds(), "runs/s")
}
