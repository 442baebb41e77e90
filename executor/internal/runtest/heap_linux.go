// SPDX-License-Identifier: Apache-2.0

package runtest

import (
	"bytes"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
)

// OutputCostsNoMemory: an endless writer whose limit is far away costs the host its capture and no more.
func OutputCostsNoMemory(t *testing.T, ex executor.Executor) {
	t.Helper()
	for _, tc := range []struct {
		name   string
		limits executor.Limits
		live   io.Writer
	}{
		{"killed at 1 MiB", executor.Limits{Wall: time.Minute, Output: 1 << 20}, nil},
		{"below the limit", executor.Limits{Wall: 600 * time.Millisecond, CPU: time.Minute, Output: 1 << 40}, nil},
		{"slow live writer", executor.Limits{Wall: time.Second, CPU: time.Minute, Output: 1 << 40}, slowWriter{}},
	} {
		runtime.GC()
		stop, peak := make(chan struct{}), make(chan uint64)
		go watchHeap(stop, peak)
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := ex.Run(t.Context(), executor.Spec{
			Args: []string{"yes"}, Workspace: t.TempDir(), Limits: tc.limits, Stdout: tc.live,
		})
		close(stop)
		most := <-peak
		if err != nil {
			t.Fatal(err)
		}
		checkFlood(t, tc.name, r)
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

func checkFlood(t *testing.T, name string, r *executor.Result) {
	t.Helper()
	if r.Cause != executor.CauseOutputLimit && r.Cause != executor.CauseWallTimeout {
		t.Errorf("%s: cause %v", name, r.Cause)
	}
	out := r.Stdout
	if out.Total < 1<<20 || !out.Truncated || len(out.Head) != executor.CaptureSize || len(out.Tail) != executor.CaptureSize {
		t.Errorf("%s: total %d, truncated %v, head %d, tail %d", name, out.Total, out.Truncated, len(out.Head), len(out.Tail))
	}
	if !bytes.HasPrefix(out.Head, []byte("y\ny\n")) {
		t.Errorf("%s: head begins %q", name, out.Head[:8])
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
