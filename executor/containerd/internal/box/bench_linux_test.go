// SPDX-License-Identifier: Apache-2.0

package box_test

import (
	"testing"
	"time"
)

// BenchmarkUse is what a run costs in a box that waits for it: /bin/true, and nothing around it.
func BenchmarkUse(b *testing.B) {
	job := shell(b, "")
	job.Stage.Programs, job.Stage.Args = []string{"/bin/true"}, []string{"true"}
	var started time.Duration
	for b.Loop() {
		b.StopTimer()
		box := open(b)
		b.StartTimer()
		begin := time.Now()
		end, err := box.Run(b.Context(), job)
		if err != nil {
			b.Fatal(err)
		}
		started += end.Started.Sub(begin)
		b.StopTimer()
		_ = box.Exit()
		<-box.ended
		b.StartTimer()
	}
	b.ReportMetric(float64(started.Microseconds())/float64(b.N), "µs-to-start/op")
}
