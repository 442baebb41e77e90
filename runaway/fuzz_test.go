// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evoseal/containment/runaway"
)

// shaky is a store that can die, lose what was not durable, and tear its last record.
type shaky struct {
	mu      sync.Mutex // a governor writes also when nobody asks
	records []runaway.Record
	durable int
	left    int // records until it dies
}

var errShaky = errors.New("the store has failed")

func (s *shaky) Load(_ context.Context, _ string, apply func(*runaway.Record) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.records) == 0 {
		return runaway.ErrNoState
	}
	for i := range s.records {
		if err := apply(&s.records[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *shaky) Append(r *runaway.Record, durable bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left--; s.left < 0 {
		return errShaky
	}
	// Through the text and back, so that the text says everything.
	line, err := r.AppendJSON(nil)
	if err != nil {
		return err
	}
	var back runaway.Record
	if err := json.Unmarshal(line, &back); err != nil {
		return err
	}
	s.records = append(s.records, back)
	if durable {
		s.durable = len(s.records)
	}
	return nil
}

func (s *shaky) Close() error { return nil }
func (s *shaky) Dir() string  { return "/" } // nobody but root may write there, so a kill file can be looked for

// die lets the store fail after some records more, and reports whether it was well until now.
func (s *shaky) die(after int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left <= 1000 {
		return false
	}
	s.left = after
	return true
}

// crash ends the process: with a loss of power, what was not synced is gone, and one record may be torn.
func (s *shaky) crash(powerLost, torn bool, keep int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if powerLost {
		s.records = s.records[:s.durable+keep%(len(s.records)-s.durable+1)]
	}
	if torn && len(s.records) > 0 {
		s.records = append(s.records, runaway.Record{Op: runaway.OpTorn})
	}
	s.durable, s.left = len(s.records), math.MaxInt
}

// model is what the host knows for certain, and what must hold whatever happens.
type model struct {
	t       *testing.T
	l       runaway.Limits
	store   *shaky
	g       *runaway.Governor
	open    []*modelIteration
	begun   int   // Begin returned without an error
	spent   int64 // Spend was called with so much and recorded it
	beyond  int64 // the overshoot that is allowed: what iterations spent beyond what they had asked for
	stopped *runaway.StopError
}

type modelIteration struct {
	it             *runaway.Iteration
	reserved, used int64
}

func (m *model) start() bool {
	g, err := runaway.Open(m.t.Context(), runID, m.l, m.store, &runaway.Options{Metered: runaway.MeterTokens})
	if m.stopped != nil {
		if stop := wantStop(m.t, err, m.stopped.Reason); *stop != *m.stopped {
			m.t.Fatalf("the stop changed from %+v to %+v", m.stopped, stop)
		}
		return false
	}
	if errors.Is(err, runaway.ErrStopped) { // its record was written when the store died, before anybody was told
		return false
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = g.Close(context.Background()) })
	m.g, m.stopped, m.open = g, nil, nil
	return true
}

// check holds the governor against what is known.
func (m *model) check(when string) {
	st := m.g.Status()
	switch {
	case st.Attempts > m.l.MaxIterations, st.Attempts < m.begun:
		m.t.Fatalf("%s: %d attempts, %d begun, cap %d", when, st.Attempts, m.begun, m.l.MaxIterations)
	case st.Spent.Tokens < m.spent:
		m.t.Fatalf("%s: %d tokens charged, %d spent", when, st.Spent.Tokens, m.spent)
	case m.begun > 0 && st.Spent.Tokens+st.Reserved.Tokens > m.l.Budget.Tokens+m.beyond:
		m.t.Fatalf("%s: %+v committed, limit %d + %d", when, st, m.l.Budget.Tokens, m.beyond)
	case m.stopped != nil && *st.Stop != *m.stopped:
		m.t.Fatalf("%s: the stop changed from %+v to %+v", when, m.stopped, st.Stop)
	}
	if m.stopped == nil && !errors.Is(st.Stop, errShaky) { // one that could not be recorded holds until Close
		m.stopped = st.Stop
	}
}

// step does what one byte says.
func (m *model) step(op, arg byte) {
	var mi *modelIteration
	if len(m.open) > 0 {
		mi = m.open[int(arg)%len(m.open)]
	}
	switch op % 8 {
	case 0, 1, 2:
		ctx, cancel := context.WithTimeout(m.t.Context(), time.Millisecond)
		defer cancel()
		e := runaway.Estimate{Tokens: int64(arg % 16)}
		before := m.g.Status().Reserved.Tokens
		it, err := m.g.Begin(ctx, e)
		if err != nil {
			return
		}
		m.begun++
		if it.Number() < m.begun {
			m.t.Fatalf("iteration %d is the %dth", it.Number(), m.begun)
		}
		m.open = append(m.open, &modelIteration{it: it, reserved: m.g.Status().Reserved.Tokens - before})
	case 3, 4:
		if mi == nil {
			return
		}
		u := int64(arg % 20)
		before := m.g.Status().Spent.Tokens
		err := mi.it.Spend(runaway.Usage{Tokens: u})
		if m.g.Status().Spent.Tokens > before {
			over := max(0, mi.used-mi.reserved)
			mi.used += u
			if errors.Is(err, runaway.ErrLost) { // on top of what it was charged when it ended
				m.beyond += u
			}
			if !errors.Is(err, errShaky) { // the caller knows that it could not be recorded
				m.spent += u
			}
			m.beyond += max(0, mi.used-mi.reserved) - over
		}
	case 5, 6:
		if mi == nil {
			return
		}
		_ = mi.it.End(runaway.Outcome{Kind: runaway.Kind(arg % 12), Head: print(arg % 32),
			Class: string(rune('a' + arg%3))})
		m.open = slices.DeleteFunc(m.open, func(o *modelIteration) bool { return o == mi })
		if m.g.Status().Paused != "" {
			_ = m.g.Resume(runaway.Approval{By: "model", Reason: "go on"})
		}
	case 7:
		switch arg % 16 {
		case 0:
			_ = m.g.Stop(runaway.ReasonOperator, "model")
		case 1:
			time.Sleep(time.Hour)
		default:
			time.Sleep(time.Duration(arg) * time.Second)
		}
	}
}

// play runs the operations with a crash wherever the bytes want one.
func (m *model) play(ops []byte) {
	for i := 0; i+1 < len(ops); i += 2 {
		op, arg := ops[i], ops[i+1]
		if op >= 0xe0 {
			// The store dies after some records more; what is admitted from then on is not known to have begun.
			if !m.store.die(int(arg % 8)) {
				_ = m.g.Close(m.t.Context())
				m.check("after the crash")
				before := m.g.Status()
				powerLost := arg&1 != 0
				m.store.crash(powerLost, arg&2 != 0, int(arg>>2))
				m.open = nil
				if !m.start() {
					return
				}
				if after := m.g.Status(); after.Torn < before.Torn || after.Active < 0 {
					m.t.Fatalf("a restart lowered %+v to %+v", before, after)
				}
			}
		} else {
			m.step(op, arg)
		}
		m.check("after a step")
	}
	_ = m.g.Close(m.t.Context())
}

// FuzzGovernor plays random operations against a store that dies at random points.
func FuzzGovernor(f *testing.F) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		ops := make([]byte, 2*(10+rng.IntN(150)))
		for i := range ops {
			ops[i] = byte(rng.Uint32())
		}
		f.Add(ops)
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 1000 {
			ops = ops[:1000]
		}
		synctest.Test(t, func(t *testing.T) {
			m := &model{t: t, store: &shaky{left: math.MaxInt}, l: runaway.Limits{
				MaxIterations: 30, MaxConsecutiveFailures: 12, MaxConcurrent: 3, Budget: runaway.Usage{Tokens: 150},
				PerIteration: 10 * time.Minute, MaxSameClass: none,
			}}
			if m.start() {
				m.play(ops)
			}
		})
	})
}

// FuzzRecord: what is read is written again as the same text, and that is read again.
func FuzzRecord(f *testing.F) {
	limits := runaway.Limits{MaxIterations: 3, Deadline: start}
	for _, r := range []runaway.Record{
		{Op: runaway.OpOpen, Limits: &limits, At: start},
		{Op: runaway.OpBegin, Iteration: 7, Parent: 1, Scope: "a/b", Usage: runaway.Usage{Tokens: 1, Cost: 2,
			Calls: 3, CPU: 4, Unpriced: true}},
		{Op: runaway.OpEnd, Iteration: 7, Kind: runaway.Accepted, Scored: true, Score: -1.5e300, Head: print(1),
			Class: "\u2028<\"\x00"},
		{Op: runaway.OpEnd, Scored: true, Score: math.NaN()},
		{Op: runaway.OpStop, Reason: runaway.ReasonWall, Limit: "l", Value: "v", Drain: true, By: "b", Detail: "d",
			Active: 5},
		{Op: runaway.OpSnapshot, Snapshot: []byte(`{"a":1}`)},
	} {
		line, err := r.AppendJSON(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Add([]byte(`{"op":"begin","odd":1}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var r, again runaway.Record
		if json.Unmarshal(line, &r) != nil {
			return
		}
		text, err := r.AppendJSON(nil)
		if err != nil {
			return // an operation that does not exist
		}
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatalf("%s was written and cannot be read: %v", text, err)
		}
		second, err := again.AppendJSON(nil)
		if err != nil || string(second) != string(text) {
			t.Errorf("%s became %s, %v", text, second, err)
		}
	})
}
