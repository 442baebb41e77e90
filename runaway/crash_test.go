// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/runaway"
)

// dying is a store whose process dies right before a record: that one and all later ones are not written.
type dying struct {
	runaway.Store
	at   func(*runaway.Record) bool
	dead bool
}

var errDead = errors.New("the process is dead")

func (d *dying) Append(r *runaway.Record, durable bool) error {
	if d.dead = d.dead || d.at(r); d.dead {
		return errDead
	}
	return d.Store.Append(r, durable)
}

// diesBefore runs steps until the process dies before the first record of that kind, and opens the run again.
func diesBefore(t *testing.T, op runaway.Op, l runaway.Limits, o *runaway.Options,
	steps func(*runaway.Governor)) *runaway.Governor {
	t.Helper()
	inner := runaway.UnsafeMemStore()
	d := &dying{Store: inner, at: func(r *runaway.Record) bool { return r.Op == op }}
	withFile := runaway.Options{}
	if o != nil {
		withFile = *o
	}
	withFile.KillFile = filepath.Join(t.TempDir(), "STOP")
	g, err := runaway.Open(t.Context(), runID, l, d, &withFile)
	if err != nil {
		t.Fatal(err)
	}
	steps(g)
	if !d.dead {
		t.Fatalf("nothing wanted to write %v: this proves nothing", op)
	}
	_ = g.Close(context.Background()) // nothing of it is written
	return open(t, inner, l, o)
}

// What is spent beyond a budget stops the run although the process died before it could write the stop.
func TestCrashBetweenSpendAndStop(t *testing.T) {
	t.Parallel()
	metered := &runaway.Options{Metered: runaway.MeterAll}
	for what, c := range map[string]struct {
		limits runaway.Limits
		spend  runaway.Usage
		want   runaway.Reason
	}{
		"nothing was allowed": {runaway.Limits{}, runaway.Usage{Tokens: 5}, runaway.ReasonTokens},
		"more than allowed": {runaway.Limits{Budget: runaway.Usage{Tokens: 100}}, runaway.Usage{Tokens: 101},
			runaway.ReasonTokens},
		"an unknown cost": {runaway.Limits{}, runaway.Usage{Unpriced: true}, runaway.ReasonCost},
		"too fast": {runaway.Limits{Budget: runaway.Usage{Calls: runaway.NoLimit}, MaxRate: runaway.Usage{Calls: 10}},
			runaway.Usage{Calls: 11}, runaway.ReasonRate},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			g := diesBefore(t, runaway.OpStop, c.limits, metered, func(g *runaway.Governor) {
				if err := begin(t, g).Spend(c.spend); !errors.Is(err, runaway.ErrStopped) {
					t.Fatalf("spend: %v", err)
				}
			})
			it, err := g.Begin(t.Context(), runaway.Estimate{})
			if it != nil {
				t.Fatalf("iteration %d began, with %+v spent", it.Number(), g.Status().Spent)
			}
			wantStop(t, err, c.want)
		})
	}
}

// A lost sandbox keeps everything from beginning, also if the process dies between the end of the iteration and the
// pause.
func TestCrashAfterSandboxLost(t *testing.T) {
	t.Parallel()
	g := diesBefore(t, runaway.OpPause, runaway.Limits{}, nil, func(g *runaway.Governor) {
		_ = begin(t, g).End(runaway.Outcome{Kind: runaway.SandboxLost})
		_ = g.Pause("the next record")
	})
	if g.Status().Paused == "" {
		t.Error("nobody verified a fresh sandbox, and the run goes on")
	}
}

// A lost sandbox during an ordinary pause is said to whoever approves that the run goes on.
func TestSandboxLostDuringPause(t *testing.T) {
	t.Parallel()
	g := open(t, runaway.UnsafeMemStore(), runaway.Limits{}, nil)
	it := begin(t, g)
	if err := g.Pause("lunch"); err != nil {
		t.Fatal(err)
	}
	if err := it.End(runaway.Outcome{Kind: runaway.SandboxLost}); err != nil {
		t.Fatal(err)
	}
	if why := g.Status().Paused; !strings.Contains(why, "sandbox") {
		t.Errorf("paused for %q: who resumes from that has verified no sandbox", why)
	}
}

// shifted is a store whose records were written by a clock that was ahead: as after a restored snapshot of a machine,
// or a correction.
type shifted struct {
	runaway.Store
	by time.Duration
}

func (s *shifted) Load(ctx context.Context, id string, apply func(*runaway.Record) error) error {
	return s.Store.Load(ctx, id, func(r *runaway.Record) error {
		moved := *r
		moved.At = r.At.Add(s.by)
		return apply(&moved)
	})
}

// A crash makes no time free, whatever the wall clock says: one that went back proves nothing about how long it was.
func TestCrashAndClockSetBack(t *testing.T) {
	t.Parallel()
	inner := runaway.UnsafeMemStore()
	file := filepath.Join(t.TempDir(), "STOP")
	d := &dying{Store: inner, at: func(r *runaway.Record) bool { return r.Op == runaway.OpClose }}
	g := open(t, d, runaway.Limits{}, &runaway.Options{KillFile: file})
	begin(t, g)
	before := g.Status().Active
	_ = g.Close(context.Background())
	g = open(t, &shifted{inner, time.Hour}, runaway.Limits{}, &runaway.Options{KillFile: file})
	if got := g.Status().Active; got < before+time.Minute {
		t.Errorf("active for %v, after %v before the crash: the time until the crash was free", got, before)
	}
}

// TestCrashCharges: an iteration that never ended is charged the larger of what it reserved and what it reported.
func TestCrashCharges(t *testing.T) {
	t.Parallel()
	for reported, want := range map[int64]int64{0: 10, 4: 10, 25: 25} {
		s, l := runaway.UnsafeMemStore(), runaway.Limits{Budget: runaway.Usage{Tokens: 100}}
		crash := &crashStore{Store: s}
		o := &runaway.Options{Metered: runaway.MeterAll, KillFile: t.TempDir() + "/STOP"}
		g := open(t, crash, l, o)
		if err := beginWith(t, g, runaway.Estimate{Tokens: 10}).Spend(runaway.Usage{Tokens: reported}); err != nil {
			t.Fatal(err)
		}
		crash.crash()
		_ = g.Close(t.Context())
		g = open(t, s, l, metered)
		if st := g.Status(); st.Spent.Tokens != want || st.Streak != 1 || st.Completed != 1 || st.Attempts != 1 ||
			len(st.Open) != 0 {
			t.Errorf("reported %d: %+v", reported, st)
		}
	}
}
