// SPDX-License-Identifier: Apache-2.0

package capture_test

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/evoseal/containment/internal/capture"
)

// An endless writer must not fill the host's memory, whether it is killed at its limit or not, and a live writer that
// hangs must not change that.
func TestHeapUnderEndlessWriter(t *testing.T) {
	const keep, limit, slack = 64 << 10, 1 << 20, 4 << 20
	for _, tt := range []struct {
		name string
		live io.Writer
	}{
		{"no live copy", nil},
		{"live copy hangs", writerFunc(func(p []byte) (int, error) { time.Sleep(2 * time.Second); return len(p), nil })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := heap(true)
			r, w := pipe(t)
			s := capture.Start(r, capture.Options{Keep: keep, Limit: limit, Live: tt.live})
			go flood(w)
			peak := uint64(0)
			for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				peak = max(peak, heap(false))
			}
			got := s.Finish(0)
			after := heap(true)
			grown := func(size uint64) int64 { return int64(size) - int64(before) }
			t.Logf("%d MiB read; heap grew by %d KiB, after that by %d KiB", got.Total>>20, grown(peak)>>10, grown(after)>>10)
			if got.Total < 8*limit || !got.Exceeded {
				t.Fatalf("only %d bytes were read: this proves nothing", got.Total)
			}
			for what, size := range map[string]uint64{"peak": peak, "after": after} {
				if grown(size) > 2*keep+slack {
					t.Errorf("%s: heap grew from %d to %d bytes", what, before, size)
				}
			}
		})
	}
}

// heap returns the bytes of heap in use, garbage included unless collect is set.
func heap(collect bool) uint64 {
	if collect {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// flood writes until the other end is closed.
func flood(w *os.File) {
	line := bytes.Repeat([]byte("y\n"), 4096)
	for {
		if _, err := w.Write(line); err != nil {
			return
		}
	}
}
