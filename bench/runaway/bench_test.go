// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"context"
	"math"
	"testing"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	"github.com/evoseal/containment/runaway"
)

func openRun(tb testing.TB) *runaway.Governor {
	tb.Helper()
	limits := runaway.Limits{
		MaxIterations: math.MaxInt, NoImprovement: runaway.NoLimit, MaxConsecutiveFailures: math.MaxInt,
		Budget: runaway.Usage{Tokens: math.MaxInt64, Cost: math.MaxInt64, Calls: math.MaxInt64, CPU: math.MaxInt64},
	}
	options := &runaway.Options{Metered: runaway.MeterAll}
	g, err := runaway.Open(tb.Context(), "bench", limits, runaway.UnsafeMemStore(), options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return g
}

// ours is one iteration: a reservation, and an outcome.
func ours(tb testing.TB, g *runaway.Governor) {
	it, err := g.Begin(tb.Context(), runaway.Estimate{Tokens: 1000, Cost: 2000, Calls: 1, CPU: 1000})
	if err != nil {
		tb.Fatal(err)
	}
	if err := it.End(runaway.Outcome{Kind: runaway.Accepted}); err != nil {
		tb.Fatal(err)
	}
}

func throughGobreaker(tb testing.TB, cb *gobreaker.CircuitBreaker[int]) {
	if _, err := cb.Execute(func() (int, error) { return 1, nil }); err != nil {
		tb.Fatal(err)
	}
}

func throughFailsafe(tb testing.TB, cb circuitbreaker.CircuitBreaker[int]) {
	if !cb.TryAcquirePermit() {
		tb.Fatal("no permit")
	}
	cb.RecordSuccess()
}

func BenchmarkBeginEnd(b *testing.B) {
	g := openRun(b)
	b.ReportAllocs()
	for b.Loop() {
		ours(b, g)
	}
}

func BenchmarkGobreakerExecute(b *testing.B) {
	cb := gobreaker.NewCircuitBreaker[int](gobreaker.Settings{})
	b.ReportAllocs()
	for b.Loop() {
		throughGobreaker(b, cb)
	}
}

func BenchmarkFailsafeManual(b *testing.B) {
	cb := circuitbreaker.NewWithDefaults[int]()
	b.ReportAllocs()
	for b.Loop() {
		throughFailsafe(b, cb)
	}
}

// TestPeers: all three let a call through and count it.
func TestPeers(t *testing.T) {
	g := openRun(t)
	one := gobreaker.NewCircuitBreaker[int](gobreaker.Settings{})
	two := circuitbreaker.NewWithDefaults[int]()
	const calls = 3
	for range calls {
		ours(t, g)
		throughGobreaker(t, one)
		throughFailsafe(t, two)
	}
	if n := one.Counts().TotalSuccesses; n != calls {
		t.Errorf("gobreaker counted %d calls, want %d", n, calls)
	}
	if n := two.Metrics().Successes(); n == 0 {
		t.Error("failsafe-go counted nothing")
	}
	it, err := g.Begin(t.Context(), runaway.Estimate{Tokens: 1, Cost: 1, Calls: 1, CPU: 1})
	if err != nil {
		t.Fatal(err)
	}
	if it.Number() != calls+1 {
		t.Errorf("the next iteration is number %d, want %d", it.Number(), calls+1)
	}
	if err := it.End(runaway.Outcome{}); err != nil {
		t.Fatal(err)
	}
}
