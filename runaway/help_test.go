// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"

	"github.com/evoseal/containment/runaway"
)

const runID = "run-1"

// open opens a run and closes it when the test ends.
func open(t testing.TB, s runaway.Store, l runaway.Limits, o *runaway.Options) *runaway.Governor {
	t.Helper()
	g, err := runaway.Open(t.Context(), runID, l, s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil && !errors.Is(err, runaway.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	})
	return g
}

// reopen closes a run and opens it again, as a restart does.
func reopen(t testing.TB, g *runaway.Governor, s runaway.Store, l runaway.Limits,
	o *runaway.Options) *runaway.Governor {
	t.Helper()
	shut(t, g)
	return open(t, s, l, o)
}

func shut(t testing.TB, g *runaway.Governor) {
	t.Helper()
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// refused is the stop that Open gives.
func refused(t testing.TB, s runaway.Store, l runaway.Limits, o *runaway.Options) *runaway.StopError {
	t.Helper()
	g, err := runaway.Open(t.Context(), runID, l, s, o)
	if err == nil {
		shut(t, g)
	}
	return wantStop(t, err, 0)
}

// wantStop checks that an error is a stop for a reason; 0 is any.
func wantStop(t testing.TB, err error, want runaway.Reason) *runaway.StopError {
	t.Helper()
	stop, ok := errors.AsType[*runaway.StopError](err)
	if !ok || !errors.Is(err, runaway.ErrStopped) {
		t.Fatalf("%v, want a stop", err)
	}
	if want != 0 && stop.Reason != want {
		t.Fatalf("stopped for %v, want %v: %v", stop.Reason, want, err)
	}
	return stop
}

// begin begins an iteration.
func begin(t testing.TB, g *runaway.Governor) *runaway.Iteration {
	t.Helper()
	return beginWith(t, g, runaway.Estimate{})
}

func beginWith(t testing.TB, g *runaway.Governor, e runaway.Estimate) *runaway.Iteration {
	t.Helper()
	it, err := g.Begin(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// once runs one iteration that must not stop the run.
func once(t testing.TB, g *runaway.Governor, o runaway.Outcome) {
	t.Helper()
	if err := begin(t, g).End(o); err != nil {
		t.Fatalf("end: %v", err)
	}
}

// drive runs iterations until there is no other one. It returns how often the step ran, and why it stopped.
func drive(t testing.TB, g *runaway.Governor, next func(n int) runaway.Outcome) (steps int, stop *runaway.StopError) {
	t.Helper()
	for it, err := range g.Iterations(t.Context(), runaway.Estimate{}) {
		if err != nil {
			return steps, wantStop(t, err, 0)
		}
		steps++
		if err := it.End(next(steps)); err != nil && !errors.Is(err, runaway.ErrStopped) {
			t.Fatal(err)
		}
	}
	t.Fatal("the loop ended without a reason")
	return 0, nil
}

// print makes a fingerprint.
func print(text any) runaway.Fingerprint {
	return sha256.Sum256(fmt.Append(nil, text))
}

// fresh accepts something new each time.
func fresh(n int) runaway.Outcome {
	return runaway.Outcome{Kind: runaway.Accepted, Head: print(n)}
}

func failing(int) runaway.Outcome { return runaway.Outcome{Kind: runaway.Rejected} }

var (
	accepted = runaway.Outcome{Kind: runaway.Accepted}
	rejected = runaway.Outcome{Kind: runaway.Rejected}
	neutral  = runaway.Outcome{Kind: runaway.Neutral}
)

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
