// SPDX-License-Identifier: Apache-2.0

package runtest

import (
	"slices"
	"testing"
	"time"
)

// Median sorts the durations.
func Median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BesidePeer measures ours and the peer's runs, interleaved in the same loop, and reports the medians and their ratio.
func BesidePeer(b *testing.B, ours, peer func() error) {
	b.Helper()
	var took [2][]time.Duration
	for b.Loop() {
		for i, run := range []func() error{ours, peer} {
			start := time.Now()
			if err := run(); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(start))
		}
	}
	o, p := Median(took[0]), Median(took[1])
	b.ReportMetric(float64(o.Microseconds())/1000, "ours-ms")
	b.ReportMetric(float64(p.Microseconds())/1000, "peer-ms")
	b.ReportMetric(float64(o)/float64(p), "ratio")
	b.ReportMetric(0, "ns/op")
}

// Throughput makes one run after the other in each of some workers. Each gets a function of its own.
func Throughput(b *testing.B, workers int, worker func() func() error) {
	b.Helper()
	turns, done := make(chan struct{}), make(chan error, workers)
	for range workers {
		run := worker()
		go func() {
			var err error
			for range turns {
				if err == nil {
					err = run()
				}
			}
			done <- err
		}()
	}
	start, n := time.Now(), 0
	for b.Loop() {
		turns <- struct{}{}
		n++
	}
	close(turns)
	for range workers {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/time.Since(start).Seconds(), "runs/s")
}
