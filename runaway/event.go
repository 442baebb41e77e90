// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// EventKind says what an event is about.
type EventKind uint8

// The kinds of event.
const (
	EventOpened    EventKind = iota + 1 // a session begins
	EventClamped                        // Iterations is above MaxIterations and has no effect
	EventAmended                        // an amendment was used: By, Detail
	EventBegin                          // Usage is reserved
	EventEnd                            // Outcome; Usage is charged
	EventWarn                           // Budget has reached Percent of its limit; once for each
	EventDuplicate                      // Head had been seen
	EventPause                          // Detail
	EventResume                         // By, Detail
	EventStop                           // Reason, Detail
	EventLeaked                         // an iteration was open at Close
	EventClosed                         // the session ends
	eventEnd
)

var eventNames = [eventEnd]string{
	"", "opened", "clamped", "amended", "begin", "end", "warn", "duplicate", "pause", "resume", "stop", "leaked",
	"closed",
}

// String returns the name of the kind.
func (k EventKind) String() string {
	if k == 0 || k >= eventEnd {
		return fmt.Sprintf("event(%d)", uint8(k))
	}
	return eventNames[k]
}

// Event is something that a governor did. It holds no text of a variant, and no secret unless the host's own texts do.
type Event struct {
	Kind      EventKind
	At        time.Time
	RunID     string
	Scope     string // which governor: "" is the run itself
	Iteration int    // the one it is about, or the last one; 0: none
	Outcome   Kind
	Reason    Reason
	Usage     Usage
	Budget    string // "iterations", "wall", "cost", "tokens", "calls" or "cpu"
	Percent   int
	Head      Fingerprint
	By        string
	Detail    string
}

// Observer is told what a governor does: one call at a time, in order, outside all locks, on a goroutine of its own. It
// may call the governor. A panic of it is dropped, and so are events while it is more than 1024 behind; Status counts
// both. The context ends when Close gives up waiting.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// queue is how many events may wait for the observer.
const queue = 1024

// outbox takes events to observers without ever waiting for them.
type outbox struct {
	observers []Observer
	events    chan Event
	dropped   uint64 // under the lock of the run
	panics    atomic.Uint64
	gone      chan struct{}
	cancel    context.CancelFunc
}

func newOutbox(observers ...Observer) *outbox {
	o := &outbox{
		observers: observers, events: make(chan Event, queue), gone: make(chan struct{}),
	}
	// Events come from many calls, so none of their contexts is that of the observer.
	ctx, cancel := context.WithCancel(context.Background())
	o.cancel = cancel
	go o.deliver(ctx)
	return o
}

// emit is called under the lock, so the order is that of what happened.
func (r *run) emit(e Event) {
	if r.out == nil || r.closed {
		return
	}
	e.At, e.RunID = r.wall(), r.RunID
	select {
	case r.out.events <- e:
	default:
		r.out.dropped++
	}
}

func (o *outbox) deliver(ctx context.Context) {
	defer close(o.gone)
	for e := range o.events {
		for _, observer := range o.observers {
			o.call(ctx, observer, e)
		}
	}
}

func (o *outbox) call(ctx context.Context, observer Observer, e Event) {
	defer func() {
		if recover() != nil { // what watches must not be able to stop what it watches
			o.panics.Add(1)
		}
	}()
	observer.Observe(ctx, e)
}
