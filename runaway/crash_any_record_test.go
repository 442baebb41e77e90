// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evoseal/containment/runaway"
)

// tape is a store that keeps what a crash leaves: up to a number of records, then nothing more is written.
type tape struct {
	records []runaway.Record
	durable int         // records that survive a loss of power
	room    int         // records until the process dies; negative: it lives
	dead    atomic.Bool // also read while the governor is at work
	torn    bool
}

func (s *tape) Load(_ context.Context, _ string, apply func(*runaway.Record) error) error {
	if len(s.records) == 0 && !s.torn {
		return runaway.ErrNoState
	}
	if s.torn { // the journal has noted it, so it is found again and again
		s.records, s.torn = append(s.records, runaway.Record{Op: runaway.OpTorn}), false
	}
	for i := range s.records {
		if err := apply(&s.records[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *tape) Append(r *runaway.Record, durable bool) error {
	if s.room == 0 {
		s.dead.Store(true)
	}
	if s.dead.Load() {
		return errDead
	}
	s.room--
	kept := *r
	if r.Limits != nil {
		l := *r.Limits
		kept.Limits = &l
	}
	if s.records = append(s.records, kept); durable {
		s.durable = len(s.records)
	}
	return nil
}

func (s *tape) Close() error { return nil }

// life runs random steps until the store dies or the steps end. It returns what the governor knew after the last step
// that was recorded in full, and the number of records then.
func life(t *testing.T, rng *rand.Rand, s *tape, g *runaway.Governor) (known runaway.Status, steps int) {
	t.Helper()
	var open []*runaway.Iteration
	known = g.Status()
	for ; steps < 60; steps++ {
		var it *runaway.Iteration
		if len(open) > 0 {
			it = open[rng.IntN(len(open))]
		}
		switch op := rng.IntN(12); {
		case it == nil || op < 2:
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // it may have to wait
			e := runaway.Estimate{}
			if rng.IntN(2) == 0 {
				e.Tokens, e.Calls = rng.Int64N(30), 1
			}
			if next, err := g.Begin(ctx, e); err == nil {
				open = append(open, next)
			}
			cancel()
		case op < 5:
			_ = it.Spend(runaway.Usage{Tokens: rng.Int64N(20), Calls: rng.Int64N(3)})
		case op == 5:
			_, _ = it.Seen(print(rng.IntN(6)))
		case op == 6:
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if child, err := it.Child(t.Context(), "c", runaway.Limits{Budget: runaway.Usage{Tokens: 50}}); err == nil {
				if inner, err := child.Begin(ctx, runaway.Estimate{Tokens: 5}); err == nil {
					_ = inner.Spend(runaway.Usage{Tokens: rng.Int64N(9)})
					_ = inner.End(runaway.Outcome{Kind: runaway.Kind(rng.IntN(11))})
				}
			}
			cancel()
		case op == 7 && rng.IntN(10) == 0:
			_ = g.Stop(runaway.ReasonOperator, "enough")
		default:
			_ = it.End(runaway.Outcome{Kind: runaway.Kind(rng.IntN(11)), Head: print(rng.IntN(40)), Class: "c",
				Scored: rng.IntN(2) == 0, Score: rng.Float64()})
			open = slices.DeleteFunc(open, func(o *runaway.Iteration) bool { return o == it })
		}
		if s.dead.Load() {
			return known, steps
		}
		known = g.Status()
	}
	return known, steps
}

// notLower says which count a restart lowered.
func notLower(before, after runaway.Status, powerLost bool) (lower []string) {
	check := func(name string, was, is int64) {
		if is < was {
			lower = append(lower, name)
		}
	}
	for name, pair := range map[string][2]int{
		"Attempts": {before.Attempts, after.Attempts}, "Nested": {before.Nested, after.Nested},
		"Completed": {before.Completed, after.Completed},
	} {
		check(name, int64(pair[0]), int64(pair[1]))
	}
	if after.Accepted <= before.Accepted { // an acceptance may have been the last thing that was written
		check("Streak", int64(before.Streak), int64(after.Streak))
		check("SinceBetter", int64(before.SinceBetter), int64(after.SinceBetter))
	}
	check("Tokens", before.Spent.Tokens, after.Spent.Tokens)
	check("Calls", before.Spent.Calls, after.Spent.Calls)
	check("Active", int64(before.Active), int64(after.Active))
	if !powerLost {
		check("Accepted", int64(before.Accepted), int64(after.Accepted))
		check("Duplicates", int64(before.Duplicates), int64(after.Duplicates))
		check("SameClass", int64(before.SameClass), int64(after.SameClass))
	}
	return lower
}

// Random steps, a crash at any record, with and without a loss of power and a torn record: no count falls, and a stop
// that was said to stand stands.
func TestCrashAtAnyRecord(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "STOP")
	synctest.Test(t, func(t *testing.T) { crashAtAnyRecord(t, file) }) // waits take no time
}

func crashAtAnyRecord(t *testing.T, file string) {
	l := runaway.Limits{
		MaxIterations: 25, MaxConsecutiveFailures: 8, MaxConcurrent: 3, Wall: 100 * time.Hour, MaxSameClass: 20,
		Budget: runaway.Usage{Tokens: 400, Calls: 60},
	}
	o := &runaway.Options{Metered: runaway.MeterTokens | runaway.MeterCalls, KillFile: file}
	crashes, stops := 0, 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 5))
		s := &tape{room: -1}
		var before runaway.Status
		for session := range 6 {
			s.room = 2 + rng.IntN(40)
			s.dead.Store(false)
			g, err := runaway.Open(t.Context(), runID, l, s, o)
			if before.Stop != nil && before.Stop.Reason != runaway.ReasonState {
				stops++
				if wantStop(t, err, before.Stop.Reason); !errors.Is(err, runaway.ErrStopped) {
					t.Fatalf("seed %d, session %d: %v, want %v", seed, session, err, before.Stop)
				}
				break
			}
			if stop, ok := errors.AsType[*runaway.StopError](err); ok && stop.Reason != runaway.ReasonState {
				break // its record was written, and nobody was told
			}
			if err != nil {
				t.Fatalf("seed %d, session %d: %v", seed, session, err)
			}
			if lower := notLower(before, g.Status(), false); lower != nil {
				t.Fatalf("seed %d, session %d: %v fell from %+v to %+v", seed, session, lower, before, g.Status())
			}
			known, _ := life(t, rng, s, g)
			if s.dead.Load() {
				crashes++
			}
			_ = g.Close(context.Background())
			if !s.dead.Load() {
				known = g.Status()
			}
			before = known
			s.torn = rng.IntN(3) == 0
		}
	}
	if crashes < 25 || stops < 25 {
		t.Errorf("%d crashes and %d stops: this proves little", crashes, stops)
	}
}

// The same with a loss of power: everything after the last durable record is gone.
func TestPowerLossAtAnyRecord(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "STOP")
	synctest.Test(t, func(t *testing.T) { powerLossAtAnyRecord(t, file) })
}

func powerLossAtAnyRecord(t *testing.T, file string) {
	l := runaway.Limits{
		MaxIterations: 25, MaxConsecutiveFailures: 8, MaxConcurrent: 3, Wall: 100 * time.Hour,
		Budget: runaway.Usage{Tokens: 400, Calls: 60},
	}
	o := &runaway.Options{Metered: runaway.MeterTokens | runaway.MeterCalls, KillFile: file}
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 6))
		s := &tape{room: 2 + rng.IntN(60)}
		g, err := runaway.Open(t.Context(), runID, l, s, o)
		if err != nil {
			t.Fatal(err)
		}
		known, _ := life(t, rng, s, g)
		s.dead.Store(true)
		_ = g.Close(context.Background())
		s.records = s.records[:s.durable+rng.IntN(len(s.records)-s.durable+1)]
		s.room = -1
		s.dead.Store(false)
		time.Sleep(time.Duration(rng.IntN(100)) * time.Second)
		again, err := runaway.Open(t.Context(), runID, l, s, o)
		if known.Stop != nil && known.Stop.Reason != runaway.ReasonState {
			wantStop(t, err, known.Stop.Reason)
			continue
		}
		if stop, ok := errors.AsType[*runaway.StopError](err); ok && stop.Reason != runaway.ReasonState {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if lower := notLower(known, again.Status(), true); lower != nil {
			t.Fatalf("seed %d: %v fell from %+v to %+v", seed, lower, known, again.Status())
		}
		_ = again.Close(t.Context())
	}
}
