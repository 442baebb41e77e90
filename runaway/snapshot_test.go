// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/evoseal/containment/internal/journal"
	"github.com/evoseal/containment/runaway"
)

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
func TestSnapshotOverSessions(t *testing.T) {
	t.Parallel()
	c := &counting{Snapshotter: runaway.UnsafeMemStore().(runaway.Snapshotter)}
	l := runaway.Limits{MaxIterations: 20_000, NoImprovement: runaway.NoLimit}
	o := &runaway.Options{KillFile: filepath.Join(t.TempDir(), "STOP")}
	n := 0
	for range 5 {
		g := open(t, c, l, o)
		for range 900 {
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
func TestSnapshotOfLaterVersion(t *testing.T) {
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

// TestSnapshotKeepsStop: a stop, a pause and used amendments are in a snapshot as well.
func TestSnapshotKeepsStop(t *testing.T) {
	t.Parallel()
	for name, store := range stores(t) {
		g := open(t, store(), runaway.Limits{}, nil)
		drive(t, g, failing)
		shut(t, g)
		o := amended("ada", "another generator", runaway.ReasonConsecutiveFailures)
		g = open(t, store(), runaway.Limits{}, o)
		runaway.SnapshotEvery(g, 1)
		it := begin(t, g)
		if err := errors.Join(g.Pause("lunch"), it.End(fresh(1))); err != nil {
			t.Fatal(err)
		}
		g = reopen(t, g, store(), runaway.Limits{}, nil)
		if st := g.Status(); st.Paused != "lunch" || st.Accepted != 1 {
			t.Errorf("%s: %+v", name, st)
		}
		if err := g.Resume(runaway.Approval{By: "ada", Reason: "eaten"}); err != nil {
			t.Fatal(err)
		}
		runaway.SnapshotEvery(g, 1)
		it = begin(t, g)
		if err := g.Stop(runaway.ReasonConsecutiveFailures, "by hand"); err != nil {
			t.Fatal(err)
		}
		stop := wantStop(t, it.End(rejected), runaway.ReasonConsecutiveFailures)
		shut(t, g)
		if again := refused(t, store(), runaway.Limits{}, o); *again != *stop {
			t.Errorf("%s: %+v, before %+v", name, again, stop)
		}
	}
}
