// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"

	"github.com/evoseal/containment/runaway"
)

// wide allows as much as a benchmark may want.
func wide() runaway.Limits {
	return runaway.Limits{
		MaxIterations: math.MaxInt, NoImprovement: runaway.NoLimit, MaxConsecutiveFailures: math.MaxInt,
		Budget: runaway.Usage{Tokens: math.MaxInt64, Cost: math.MaxInt64, Calls: math.MaxInt64, CPU: math.MaxInt64},
	}
}

var oneStep = runaway.Estimate{Tokens: 1000, Cost: 2000, Calls: 1, CPU: 1000}

func benchOpen(b *testing.B, s runaway.Store) *runaway.Governor {
	b.Helper()
	g, err := runaway.Open(b.Context(), "bench", wide(), s, &runaway.Options{Metered: runaway.MeterAll})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = g.Close(b.Context()) })
	return g
}

func step(b *testing.B, g *runaway.Governor, spend bool) {
	it, err := g.Begin(b.Context(), oneStep)
	if err != nil {
		b.Fatal(err)
	}
	if spend {
		if err := it.Spend(oneStep); err != nil {
			b.Fatal(err)
		}
	}
	if err := it.End(runaway.Outcome{Kind: runaway.Accepted}); err != nil {
		b.Fatal(err)
	}
}

// Begin and End in memory, with all budgets limited and a reservation in each.
func BenchmarkBeginEndMemory(b *testing.B) {
	g := benchOpen(b, runaway.UnsafeMemStore())
	b.ReportAllocs()
	for b.Loop() {
		step(b, g, false)
	}
}

func BenchmarkBeginSpendEndMemory(b *testing.B) {
	g := benchOpen(b, runaway.UnsafeMemStore())
	b.ReportAllocs()
	for b.Loop() {
		step(b, g, true)
	}
}

// With a question about a variant that is new each time.
func BenchmarkBeginSeenEndMemory(b *testing.B) {
	var g *runaway.Governor
	b.ReportAllocs()
	n := uint64(0)
	for b.Loop() {
		if n%100_000 == 0 { // a run remembers no more than 262144 fingerprints
			b.StopTimer()
			g = benchOpen(b, runaway.UnsafeMemStore())
			b.StartTimer()
		}
		n++
		it, err := g.Begin(b.Context(), oneStep)
		if err != nil {
			b.Fatal(err)
		}
		var f runaway.Fingerprint
		binary.BigEndian.PutUint64(f[:], n)
		if seen, err := it.Seen(f); seen || err != nil {
			b.Fatal(seen, err)
		}
		if err := it.End(accepted); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBeginEndParallel(b *testing.B) {
	l := wide()
	l.MaxConcurrent = 1024
	g, err := runaway.Open(b.Context(), "bench", l, runaway.UnsafeMemStore(), metered)
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close(b.Context())
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			it, err := g.Begin(b.Context(), oneStep)
			if err == nil {
				err = it.End(accepted)
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// Everything that a FileStore does, but for the syncs: two records and four looks at the files.
func BenchmarkBeginEndJournalUnsynced(b *testing.B) {
	c := &calls{noSync: true}
	g := benchOpen(b, c.store(filepath.Join(b.TempDir(), "s")))
	b.ReportAllocs()
	for b.Loop() {
		step(b, g, false)
	}
}

// What an iteration costs on this disk.
func BenchmarkBeginEndJournal(b *testing.B) {
	s, err := runaway.FileStore(filepath.Join(b.TempDir(), "s"))
	if err != nil {
		b.Fatal(err)
	}
	g := benchOpen(b, s)
	b.ReportAllocs()
	for b.Loop() {
		step(b, g, false)
	}
}

func BenchmarkCheck(b *testing.B) {
	s, err := runaway.FileStore(filepath.Join(b.TempDir(), "s"))
	if err != nil {
		b.Fatal(err)
	}
	g := benchOpen(b, s)
	it, err := g.Begin(b.Context(), oneStep)
	if err != nil {
		b.Fatal(err)
	}
	defer it.End(accepted)
	b.ReportAllocs()
	for b.Loop() {
		if err := it.Check(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
