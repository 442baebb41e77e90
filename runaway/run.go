// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// run is what a governor and all its children share: one ledger, one store, one lock. With one lock there is no order
// to keep between a child's and its parent's.
type run struct {
	mu     sync.Mutex
	ledger // what the records say
	clock
	// quiet is until when nothing is due, on the clock of the session. The watcher looks again then.
	quiet time.Duration

	store Store
	meter Meter
	files lookout
	// filePause says why the pause file holds the run; unlike Governor.Pause, that is not recorded.
	filePause string
	// broken is set when a record could not be written. From then on nothing is admitted.
	broken *StopError
	closed bool
	head   string // of the journal when it was closed

	dirty      bool // a record was appended that is not durable
	dirtySince time.Duration
	sinceSnap  int // records since the last snapshot
	snapEvery  int

	changed chan struct{} // closed when somebody who waits should look again; nil: nobody waits
	wake    chan struct{} // makes the watcher look at its clock
	quit    chan struct{}
	watched chan struct{} // closed when the watcher has gone

	out     *outbox
	cancels []canceller // contexts to cancel once the lock is free
	slab    []Iteration
	rec     Record // of an iteration: used again, so that it costs no memory
}

// canceller is a bound context that has to end.
type canceller struct {
	cancel context.CancelCauseFunc
	cause  error
}

// snapshotEvery is how many records are kept before a Snapshotter is asked to shorten them.
const snapshotEvery = 8192

// lock also looks at the clock: all that is done under one lock is done at one moment.
func (r *run) lock() {
	r.mu.Lock()
	r.look()
}

// unlock cancels contexts after the lock is free: whoever waits for them may call back at once.
func (r *run) unlock() {
	cancels := r.cancels
	r.cancels = nil
	r.mu.Unlock()
	for _, c := range cancels {
		c.cancel(c.cause)
	}
}

// record begins a record of an iteration, which has to be committed before the next one.
func (r *run) record(op Op, s *scope, n int) *Record {
	rec := &r.rec
	*rec = Record{} // cleared in place; a literal with values would be built elsewhere and copied
	rec.Op, rec.Scope, rec.Iteration = op, s.Path, n
	return rec
}

// commit records something and makes it so. If the record cannot be written, it counts in memory all the same, and the
// run stops.
func (r *run) commit(rec *Record, durable bool) error {
	rec.At, rec.Active = r.wall(), r.mark
	if err := r.apply(rec); err != nil {
		return r.fail(err)
	}
	if r.broken != nil {
		return r.broken
	}
	if err := r.store.Append(rec, durable); err != nil {
		return r.fail(fmt.Errorf("record %v of iteration %d: %w", rec.Op, rec.Iteration, err))
	}
	switch {
	case durable:
		r.dirty = false
	case !r.dirty:
		r.dirty, r.dirtySince = true, r.now
	}
	r.sinceSnap++
	return nil
}

// fail stops the run because it can no longer be recorded. The stop cannot be recorded either, so it is of this
// session: what the journal has will be found when it is opened again, if it can be.
func (r *run) fail(err error) error {
	if r.broken != nil {
		return r.broken
	}
	root := r.root()
	r.broken = &StopError{
		Reason: ReasonState, Limit: "every record must be written", Iteration: root.Begun, At: r.wall(), Err: err,
	}
	r.broken.complete(r.RunID, "")
	if root.Stop == nil {
		root.Stop = r.broken
	}
	r.emit(Event{Kind: EventStop, Reason: ReasonState, Detail: err.Error(), Iteration: root.Begun})
	r.abort(root)
	r.broadcast()
	return r.broken
}

// snapshot shortens the journal when it has become long. Between two calls of the governor there is always a state to
// write, also with open iterations.
func (r *run) snapshot() {
	// A snapshot takes as long as there are fingerprints, so there are fewer when there are many.
	if r.sinceSnap < max(r.snapEvery, r.remembered/4) || r.broken != nil {
		return
	}
	store, ok := r.store.(Snapshotter)
	if !ok {
		return
	}
	state, err := json.Marshal(&r.ledger)
	if err == nil {
		err = store.Snapshot(&Record{Op: OpSnapshot, At: r.wall(), Active: r.mark, Snapshot: state})
	}
	if err != nil {
		// The old journal may be as good as before, but only the store knows.
		_ = r.fail(fmt.Errorf("snapshot: %w", err))
		return
	}
	r.sinceSnap, r.dirty = 0, false
}

// broadcast wakes everybody who waits in Begin or Check.
func (r *run) broadcast() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// change is closed by the next broadcast.
func (r *run) change() <-chan struct{} {
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// paused says why a governor has to wait; "": it need not.
func (r *run) paused(s *scope) string {
	if r.filePause != "" {
		return r.filePause
	}
	for ; s != nil; s = s.parent {
		if s.Paused != "" {
			return s.Paused
		}
	}
	return ""
}
