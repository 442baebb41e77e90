// SPDX-License-Identifier: Apache-2.0

package capture_test

import (
	"io"
	"os"
	"testing"

	"github.com/evoseal/containment/internal/capture"
)

// BenchmarkDrain drains 64 MiB, beside the least that can be done with a pipe: reading it and throwing it away.
func BenchmarkDrain(b *testing.B) {
	const size = 64 << 20
	chunk := make([]byte, 64<<10)
	fill := func(w *os.File) {
		for range size / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				break
			}
		}
		_ = w.Close()
	}
	run := func(b *testing.B, drain func(r *os.File) int64) {
		b.SetBytes(size)
		b.ReportAllocs()
		for b.Loop() {
			r, w, err := os.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			go fill(w)
			if n := drain(r); n != size {
				b.Fatalf("%d bytes", n)
			}
		}
	}
	b.Run("capture", func(b *testing.B) {
		run(b, func(r *os.File) int64 {
			return capture.Start(r, capture.Options{Keep: 64 << 10, Limit: size}).Finish(long).Total
		})
	})
	b.Run("live", func(b *testing.B) {
		cut := 0
		run(b, func(r *os.File) int64 {
			live := struct{ io.Writer }{io.Discard}
			got := capture.Start(r, capture.Options{Keep: 64 << 10, Limit: size, Live: live}).Finish(long)
			if got.LiveErr != nil {
				cut++
			}
			return got.Total
		})
		b.ReportMetric(float64(cut)/float64(b.N), "cut/op")
	})
	b.Run("peer=discard", func(b *testing.B) {
		buf := make([]byte, 64<<10)
		run(b, func(r *os.File) int64 {
			defer func() { _ = r.Close() }()
			n, _ := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, buf)
			return n
		})
	})
}

// BenchmarkSmall is the usual run: a few bytes.
func BenchmarkSmall(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		r, w, err := os.Pipe()
		if err != nil {
			b.Fatal(err)
		}
		s := capture.Start(r, capture.Options{Keep: 64 << 10, Limit: 16 << 20})
		_, _ = w.WriteString("ten bytes\n")
		_ = w.Close()
		if got := s.Finish(long); got.Total != 10 {
			b.Fatalf("%d bytes", got.Total)
		}
	}
}

// BenchmarkPipe is what the pipe of BenchmarkSmall costs without a capture.
func BenchmarkPipe(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		r, w, err := os.Pipe()
		if err != nil {
			b.Fatal(err)
		}
		_, _ = w.WriteString("ten bytes\n")
		_ = w.Close()
		_ = r.Close()
	}
}
