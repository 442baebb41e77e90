// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rlimit_test

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/rlimit"
)

// big is a tree of 60 processes that ignore every polite signal, half of them in sessions of their own, all with the
// run's output open.
const big = `
trap "" TERM HUP INT QUIT
for i in $(seq 30); do
	sh -c 'trap "" TERM HUP INT; while :; do sleep 100; done' &
	setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 100; done' &
done
echo begun
while :; do sleep 100; done`

func TestTreeAtTheDeadline(t *testing.T) {
	state := stateDir(t)
	ex := newExecutor(t, rlimit.Config{StateDir: state})
	const wall = 700 * time.Millisecond
	spec := sh(t, big)
	spec.Limits = executor.Limits{Wall: wall, Processes: 300}
	r, err := ex.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if r.Cause != executor.CauseWallTimeout || !strings.Contains(r.Stdout.String(), "begun") {
		t.Fatalf("cause %v, output %q, stderr %q", r.Cause, r.Stdout.String(), r.Stderr.String())
	}
	tracesGone(t, state)
	late := r.Usage.Wall - wall + r.Timing.Teardown
	t.Logf("result %v after the deadline", late)
	// The figure is measured by the benchmark; here only what would be a broken promise on any machine.
	if late > 5*time.Second {
		t.Errorf("result %v after the deadline", late)
	}
}

// BenchmarkTreeAtTheDeadline reports how long after its deadline the result of the big tree is there.
func BenchmarkTreeAtTheDeadline(b *testing.B) {
	ex := defaultExecutor(b)
	const wall = 400 * time.Millisecond
	spec := sh(b, big)
	spec.Limits = executor.Limits{Wall: wall, Processes: 300}
	var late []time.Duration
	for b.Loop() {
		r, err := ex.Run(b.Context(), spec)
		if err != nil || r.Cause != executor.CauseWallTimeout {
			b.Fatal(r, err)
		}
		late = append(late, r.Usage.Wall-wall+r.Timing.Teardown)
	}
	b.ReportMetric(float64(median(late).Microseconds())/1000, "ms-late")
}

// An endless writer whose limit is far away costs the host its capture and no more.
func TestOutputCostsNoMemory(t *testing.T) {
	ex := newExecutor(t, rlimit.Config{})
	for _, tc := range []struct {
		name   string
		limits executor.Limits
		live   io.Writer
	}{
		{"killed at 1 MiB", executor.Limits{Wall: 2 * time.Second, Output: 1 << 20}, nil},
		{"2 seconds below the limit", executor.Limits{Wall: 2 * time.Second, CPU: time.Minute, Output: 1 << 40}, nil},
		{"slow live writer", executor.Limits{Wall: time.Second, CPU: time.Minute, Output: 1 << 40}, slowWriter{}},
	} {
		runtime.GC()
		stop, peak := make(chan struct{}), make(chan uint64)
		go watchHeap(stop, peak)
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		spec := sh(t, "exec yes")
		spec.Limits, spec.Stdout = tc.limits, tc.live
		r, err := ex.Run(t.Context(), spec)
		close(stop)
		most := <-peak
		if err != nil {
			t.Fatal(err)
		}
		if r.Cause != executor.CauseOutputLimit && r.Cause != executor.CauseWallTimeout {
			t.Errorf("%s: cause %v", tc.name, r.Cause)
		}
		if r.Stdout.Total < 1<<20 || !r.Stdout.Truncated || len(r.Stdout.Head) != executor.CaptureSize || len(r.Stdout.Tail) != executor.CaptureSize {
			t.Errorf("%s: total %d, truncated %v, head %d, tail %d", tc.name, r.Stdout.Total, r.Stdout.Truncated, len(r.Stdout.Head), len(r.Stdout.Tail))
		}
		if !bytes.HasPrefix(r.Stdout.Head, []byte("y\ny\n")) {
			t.Errorf("%s: head begins %q", tc.name, r.Stdout.Head[:8])
		}
		if tc.live != nil && r.Stdout.LiveErr == nil {
			t.Errorf("%s: the live copy was not cut off", tc.name)
		}
		grown := int64(most) - int64(before.HeapAlloc)
		t.Logf("%s: %d MiB of output, heap grew by %d KiB", tc.name, r.Stdout.Total>>20, grown>>10)
		if grown > 4<<20+2*executor.CaptureSize {
			t.Errorf("%s: the heap grew by %d bytes", tc.name, grown)
		}
	}
}

type slowWriter struct{}

func (slowWriter) Write(p []byte) (int, error) {
	time.Sleep(300 * time.Millisecond)
	return len(p), nil
}

func watchHeap(stop chan struct{}, peak chan uint64) {
	var most uint64
	for {
		select {
		case <-stop:
			peak <- most
			return
		case <-time.After(5 * time.Millisecond):
			var s runtime.MemStats
			runtime.ReadMemStats(&s)
			most = max(most, s.HeapAlloc)
		}
	}
}
