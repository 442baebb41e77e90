// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/runaway"
)

// large makes a scene of 1,000 files of some 2 kB, in directories of 25, beside the usual ones.
func large(b *testing.B) *scene {
	s := setScene(b)
	s.limits = runaway.Limits{MaxIterations: 1 << 30, MaxConsecutiveFailures: 1 << 30, MaxFailures: runaway.NoLimit,
		MaxSameClass: runaway.NoLimit, NoImprovement: runaway.NoLimit}
	line := "The quick brown fox jumps over the lazy dog, and this is line %d of file %d.\n"
	for n := range 1000 {
		var content string
		for l := range 25 {
			content += fmt.Sprintf(line, l, n)
		}
		s.write(fmt.Sprintf("src/d%02d/f%04d.txt", n/25, n), content)
	}
	return s
}

// three edits, different ones for each number.
func three(s *scene, n int) (edits []allowlist.Edit) {
	for _, name := range []string{"src/d00/f0001.txt", "src/d17/f0444.txt", "src/d39/f0999.txt"} {
		edits = append(edits, s.modify(name, fmt.Sprintf("variant %d\n", n)))
	}
	return edits
}

// BenchmarkTry is what a step costs beside the run itself, which takes no time here: a tree of 1,000 files, 3 edits,
// and everything durable that has to be. Each stage is reported beside the sum.
func BenchmarkTry(b *testing.B) {
	for _, c := range []struct {
		name string
		code int
	}{{"kept", 0}, {"restored", 1}} {
		b.Run(c.name, func(b *testing.B) {
			s := large(b)
			s.fake.run = func(context.Context, executor.Spec) (*executor.Result, error) { return ended(c.code), nil }
			benchTry(b, s, c.code == 0)
		})
	}
}

func benchTry(b *testing.B, s *scene, want bool) {
	bound, _ := s.open()
	var stages isolation.Timing
	n := 0
	for b.Loop() {
		n++
		b.StopTimer()
		p := isolation.Proposal{Edits: three(s, n)}
		b.StartTimer()
		v, err := bound.Try(context.Background(), p)
		if err != nil || v.Accepted != want {
			b.Fatalf("%+v, %v", v, err)
		}
		for stage, took := range v.Timing.All() {
			stages[stage] += took
		}
	}
	for stage, took := range stages.All() {
		b.ReportMetric(float64(took)/float64(time.Millisecond)/float64(n), stage.String()+"-ms")
	}
	b.ReportMetric(float64(stages.Total())/float64(time.Millisecond)/float64(n), "sum-ms")
}
