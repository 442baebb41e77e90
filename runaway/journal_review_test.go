// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/internal/journal"
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

// A store that is in use stays in use: a second Open of the same value must not close it for the first, and must not
// leave two governors that count for themselves.
func TestReviewSecondOpenOfOneStore(t *testing.T) {
	t.Parallel()
	for name, store := range stores(t) {
		for what, limits := range map[string]runaway.Limits{
			"good limits": {MaxIterations: 4}, "bad limits": {MaxIterations: -1},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				l := runaway.Limits{MaxIterations: 4}
				id := strings.ReplaceAll(what, " ", "-")
				s := store()
				if name == "memory" {
					s = runaway.UnsafeMemStore()
				}
				first, err := runaway.Open(t.Context(), id, l, s, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = first.Close(context.Background()) }()
				if g, err := runaway.Open(t.Context(), id, limits, s, nil); err == nil {
					t.Error("the store was opened a second time")
					_ = g.Close(t.Context())
				}
				begun := 0
				again, err := runaway.Open(t.Context(), id, l, s, nil)
				if !errors.Is(err, runaway.ErrStateLocked) {
					t.Errorf("the third opener: %v, want ErrStateLocked", err)
				}
				for _, g := range []*runaway.Governor{first, again} {
					for range 6 {
						if g == nil {
							break
						}
						it, err := g.Begin(t.Context(), runaway.Estimate{})
						if err != nil {
							break
						}
						begun++
						_ = it.End(runaway.Outcome{Kind: runaway.Accepted, Head: print(begun)})
					}
				}
				if begun != 4 {
					t.Errorf("%d iterations began, want the 4 of the first governor", begun)
				}
			})
		}
	}
}

// What is spent beyond a budget stops the run although the process died before it could write the stop.
func TestReviewCrashBetweenSpendAndStop(t *testing.T) {
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
func TestReviewCrashAfterSandboxLost(t *testing.T) {
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
func TestReviewSandboxLostDuringPause(t *testing.T) {
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
func TestReviewCrashAndClockSetBack(t *testing.T) {
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

// counting counts the snapshots that a governor asks for.
type counting struct {
	runaway.Snapshotter
	snapshots int
	last      runaway.Record
}

func (c *counting) Snapshot(r *runaway.Record) error {
	c.snapshots++
	c.last = *r
	return c.Snapshotter.Snapshot(r)
}

// A run of many short sessions is shortened as well. Otherwise its journal reaches the largest size, from where there
// is no way back: a snapshot is only taken at the end of an iteration, and none can begin.
func TestReviewSnapshotOverSessions(t *testing.T) {
	t.Parallel()
	c := &counting{Snapshotter: runaway.UnsafeMemStore().(runaway.Snapshotter)}
	l := runaway.Limits{MaxIterations: 20_000, NoImprovement: runaway.NoLimit}
	o := &runaway.Options{KillFile: filepath.Join(t.TempDir(), "STOP")}
	n := 0
	for range 5 {
		g := open(t, c, l, o)
		for range 2000 {
			n++
			once(t, g, fresh(n))
		}
		shut(t, g)
	}
	if c.snapshots == 0 {
		t.Errorf("%d iterations, at least %d records, and no snapshot", n, 2*n)
	}
}

// A snapshot of a later version may say more than this version would do, as a record may: it is refused, not half-read.
func TestReviewSnapshotOfLaterVersion(t *testing.T) {
	t.Parallel()
	c := &counting{Snapshotter: runaway.UnsafeMemStore().(runaway.Snapshotter)}
	l := runaway.Limits{MaxIterations: 20_000, NoImprovement: runaway.NoLimit}
	g := open(t, c, l, &runaway.Options{KillFile: filepath.Join(t.TempDir(), "STOP")})
	for n := 0; c.snapshots == 0 && n < 19_000; n++ {
		once(t, g, fresh(n))
	}
	shut(t, g)
	if c.snapshots == 0 {
		t.Fatal("no snapshot was taken: this proves nothing")
	}
	var state map[string]json.RawMessage
	if err := json.Unmarshal(c.last.Snapshot, &state); err != nil {
		t.Fatal(err)
	}
	state["stop_of_a_later_kind"] = json.RawMessage(`{"reason":"new"}`)
	changed, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	if err := openSnapshot(t, l, c.last, c.last.Snapshot); err != nil {
		t.Fatalf("the snapshot itself: %v", err)
	}
	if err := openSnapshot(t, l, c.last, changed); !errors.Is(err, runaway.ErrStateCorrupt) {
		t.Errorf("with a field that nobody knows: %v, want ErrStateCorrupt", err)
	}
}

// openSnapshot opens a run whose journal begins with this snapshot.
func openSnapshot(t *testing.T, l runaway.Limits, r runaway.Record, state []byte) error {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	j, err := journal.Create(journal.Config{Dir: dir, Name: runID, Kind: "runaway", ID: runID}, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Snapshot = state
	line, err := r.AppendJSON(nil)
	if err == nil {
		err = j.Rotate(j.Head(), line)
	}
	if err = errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	s, err := runaway.FileStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	g, err := runaway.Open(t.Context(), runID, l, s, nil)
	if err == nil {
		shut(t, g)
	}
	return err
}
