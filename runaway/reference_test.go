// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evoseal/containment/runaway"
)

// The names of these tests are those of EVOSEAL's tests/safety/test_runaway_controls.py, where each asserts True. The
// tenth, which kills processes, is in kill_linux_test.go.

func TestDefaultIterationCapIsReasonable(t *testing.T) {
	t.Parallel()
	g := open(t, runaway.UnsafeMemStore(), runaway.Limits{}, nil)
	steps, stop := drive(t, g, fresh)
	if steps != 1000 || stop.Reason != runaway.ReasonIterations {
		t.Errorf("%d steps, then %v", steps, stop)
	}
}

func TestIterationCapConfigurableViaConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limits runaway.Limits
		steps  int
		reason runaway.Reason
	}{
		{runaway.Limits{MaxIterations: 7, Iterations: 40}, 7, runaway.ReasonIterations},
		{runaway.Limits{MaxIterations: 7, Iterations: 3}, 3, runaway.ReasonCompleted},
		{runaway.Limits{MaxIterations: 7}, 7, runaway.ReasonIterations},
		{runaway.Limits{Iterations: 4}, 4, runaway.ReasonCompleted},
		{runaway.Limits{Iterations: 4000}, 1000, runaway.ReasonIterations},
	} {
		s := runaway.UnsafeMemStore()
		g := open(t, s, c.limits, nil)
		steps, stop := drive(t, g, fresh)
		if steps != c.steps || stop.Reason != c.reason || !stop.Graceful {
			t.Errorf("%+v: %d steps, then %v", c.limits, steps, stop)
		}
		shut(t, g)
		if again := refused(t, s, c.limits, nil); again.Reason != c.reason {
			t.Errorf("%+v: after a restart %v", c.limits, again)
		}
	}
	for _, l := range []runaway.Limits{
		{MaxIterations: runaway.NoLimit}, {Iterations: runaway.NoLimit}, {MaxConsecutiveFailures: runaway.NoLimit},
	} {
		if _, err := runaway.Open(t.Context(), runID, l, runaway.UnsafeMemStore(), nil); !errors.Is(err,
			runaway.ErrInvalidLimits) {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

func TestConsecutiveRejectionTracking(t *testing.T) {
	t.Parallel()
	s := runaway.UnsafeMemStore()
	g := open(t, s, runaway.Limits{}, nil)
	for i, c := range []struct {
		outcome runaway.Outcome
		streak  int
	}{
		{rejected, 1}, {rejected, 2}, {neutral, 2}, {runaway.Outcome{Kind: runaway.RolledBack}, 3}, {fresh(1), 0},
		{runaway.Outcome{}, 1}, {fresh(1), 1}, {runaway.Outcome{Kind: runaway.Failed}, 2}, {fresh(2), 0}, {accepted,
			0}, {rejected, 1},
	} {
		once(t, g, c.outcome)
		if got := g.Status().Streak; got != c.streak {
			t.Errorf("%d: streak %d after %v, want %d", i, got, c.outcome.Kind, c.streak)
		}
		g = reopen(t, g, s, runaway.Limits{}, nil)
		if got := g.Status().Streak; got != c.streak {
			t.Errorf("%d: streak %d after a restart, want %d", i, got, c.streak)
		}
	}
}

func TestStuckGeneratorDetectionThreshold(t *testing.T) {
	t.Parallel()
	g := open(t, runaway.UnsafeMemStore(), runaway.Limits{}, nil)
	for range 4 {
		once(t, g, rejected)
	}
	steps, stop := drive(t, g, failing)
	if steps != 1 || stop.Reason != runaway.ReasonConsecutiveFailures || g.Status().Attempts != 5 {
		t.Errorf("%d more steps, %d in all, then %v", steps, g.Status().Attempts, stop)
	}
}

func TestStuckCircuitTriggersStop(t *testing.T) {
	t.Parallel()
	s := runaway.UnsafeMemStore()
	g := open(t, s, runaway.Limits{}, nil)
	_, stop := drive(t, g, failing)
	var everybody sync.WaitGroup
	for range 8 {
		everybody.Go(func() {
			if _, err := g.Begin(t.Context(), runaway.Estimate{}); err != error(stop) {
				t.Errorf("another goroutine: %v", err)
			}
		})
	}
	everybody.Wait()
	shut(t, g)
	for range 2 {
		again := refused(t, s, runaway.Limits{}, nil)
		if *again != *stop {
			t.Errorf("%+v after a restart, before %+v", again, stop)
		}
	}
}

func TestRejectionCounterResetsOnAcceptance(t *testing.T) {
	t.Parallel()
	g := open(t, runaway.UnsafeMemStore(), runaway.Limits{}, nil)
	four := func() {
		for range 4 {
			once(t, g, rejected)
		}
	}
	four()
	once(t, g, fresh(1))
	four()
	once(t, g, fresh(1)) // known: the four stand
	if err := begin(t, g).End(rejected); !errors.Is(err, runaway.ErrStopped) {
		t.Errorf("a known head has reset the streak: %v, %+v", err, g.Status())
	}
}

func TestFailedVariantsCountAsRejections(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*testing.T, *runaway.Governor){
		"undefined": func(t *testing.T, g *runaway.Governor) { _ = begin(t, g).End(runaway.Outcome{Kind: 77}) },
		"forgotten": func(t *testing.T, g *runaway.Governor) {
			for range g.Iterations(t.Context(), runaway.Estimate{}) {
				break
			}
		},
		"panic": func(t *testing.T, g *runaway.Governor) {
			defer func() {
				if recover() != "the step" {
					t.Error("the panic was swallowed")
				}
			}()
			for range g.Iterations(t.Context(), runaway.Estimate{}) {
				panic("the step")
			}
		},
		"Goexit": func(t *testing.T, g *runaway.Governor) {
			var step sync.WaitGroup
			step.Go(func() {
				for range g.Iterations(t.Context(), runaway.Estimate{}) {
					runtime.Goexit()
				}
			})
			step.Wait()
		},
		"timeout": func(t *testing.T, g *runaway.Governor) {
			it := begin(t, g)
			time.Sleep(2 * time.Minute)
			if err := it.End(fresh(1)); !errors.Is(err, runaway.ErrLost) {
				t.Errorf("an end that came too late: %v", err)
			}
		},
		"never ended, then a restart": nil,
	}
	for kind := range runaway.Neutral {
		if kind.Failure() {
			ends[kind.String()] = func(t *testing.T, g *runaway.Governor) {
				_ = begin(t, g).End(runaway.Outcome{Kind: kind})
				if kind == runaway.SandboxLost {
					if err := g.Resume(runaway.Approval{By: "test", Reason: "a fresh one"}); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
	if len(ends) != 6+8 {
		t.Fatalf("%d ways to fail", len(ends))
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, l := runaway.UnsafeMemStore(), runaway.Limits{PerIteration: time.Minute}
				g := open(t, s, l, nil)
				for i := range 5 {
					if got := g.Status(); got.Streak != i || got.Stop != nil {
						t.Fatalf("streak %d after %d failures, %v", got.Streak, i, got.Stop)
					}
					if end != nil {
						end(t, g)
						continue
					}
					begin(t, g)
					var leak *runaway.LeakError
					if err := g.Close(t.Context()); !errors.As(err, &leak) {
						t.Fatalf("close: %v", err)
					}
					if i == 4 { // nothing has looked at the streak yet
						g = open(t, s, l, nil)
						_, err := g.Begin(t.Context(), runaway.Estimate{})
						wantStop(t, err, runaway.ReasonConsecutiveFailures)
						return
					}
					g = open(t, s, l, nil)
				}
				_, err := g.Begin(t.Context(), runaway.Estimate{})
				wantStop(t, err, runaway.ReasonConsecutiveFailures)
			})
		})
	}
}

func TestStuckCircuitConfigurable(t *testing.T) {
	t.Parallel()
	for threshold, want := range map[int]int{0: 5, 1: 1, 2: 2, 9: 9} {
		g := open(t, runaway.UnsafeMemStore(), runaway.Limits{MaxConsecutiveFailures: threshold}, nil)
		if steps, stop := drive(t, g, failing); steps != want || stop.Reason != runaway.ReasonConsecutiveFailures {
			t.Errorf("threshold %d: %d steps, then %v", threshold, steps, stop)
		}
	}
	for _, l := range []int{-1, -2, -1000} {
		l := runaway.Limits{MaxConsecutiveFailures: l}
		if _, err := runaway.Open(t.Context(), runID, l, runaway.UnsafeMemStore(), nil); !errors.Is(err,
			runaway.ErrInvalidLimits) {
			t.Errorf("%d: %v", l.MaxConsecutiveFailures, err)
		}
	}
}

func TestStuckDetectionRespectsIterationCap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit, streak, steps int
		reason               runaway.Reason
	}{
		{3, 5, 3, runaway.ReasonIterations},
		{10, 3, 3, runaway.ReasonConsecutiveFailures},
	} {
		g := open(t, runaway.UnsafeMemStore(), runaway.Limits{MaxIterations: c.limit,
			MaxConsecutiveFailures: c.streak}, nil)
		if steps, stop := drive(t, g, failing); steps != c.steps || stop.Reason != c.reason {
			t.Errorf("%s: %d steps, then %v", fmt.Sprint(c), steps, stop)
		}
	}
}
