// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// maxQueue bounds the bytes that wait for a live writer, the ones it is writing included.
	maxQueue = 512 << 10
	// patience is the time for which a stream waits, in all, when that queue is full. A pipe fills it in 200 µs, which is
	// less than it may take to schedule the goroutine that empties it: without any patience even a writer that only
	// throws its bytes away was cut off (measured, nine of ten streams of 64 MiB on two processors).
	patience = 100 * time.Millisecond
)

// ErrLiveSlow says that a live copy was cut off because the writer did not keep up with the stream, or had not returned
// a bounded time after its end.
var ErrLiveSlow = errors.New("capture: live copy cut off: the writer did not keep up")

var (
	errLiveExit = errors.New("capture: live copy cut off: the writer ended its goroutine")
)

// live copies a stream to a writer of the caller. The writer is foreign code that may fail, panic or block for ever, so
// it has a goroutine to itself and a queue that is never waited for.
type live struct {
	w    io.Writer
	done chan struct{} // closed when the goroutine ends
	room chan struct{} // holds a token after the queue was emptied or given up
	wait time.Duration // what is left of patience; only offer uses it

	mu     sync.Mutex // guards what follows; never held while the writer runs
	wake   sync.Cond
	queue  []byte
	flight int   // bytes handed to the writer
	ended  bool  // the stream has ended: write what is queued, then stop
	err    error // why nothing more is written
}

func startLive(w io.Writer) *live {
	l := &live{w: w, done: make(chan struct{}), room: make(chan struct{}, 1), wait: patience}
	l.wake.L = &l.mu
	go l.run()
	return l
}

// offer queues a copy of p, or cuts the writer off if it is too far behind. The waits of all calls together are bounded
// by patience: a writer that hangs delays the payload once and by no more than that.
func (l *live) offer(p []byte) {
	for !l.queued(p) {
		start := time.Now()
		if !ended(l.room, l.wait) {
			l.mu.Lock()
			l.cut(ErrLiveSlow)
			l.mu.Unlock()
			return
		}
		l.wait -= time.Since(start)
	}
}

// queued reports whether p needs no further thought: it is in the queue, or the copy is over.
func (l *live) queued(p []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || l.ended {
		return true
	}
	if len(l.queue)+l.flight+len(p) > maxQueue {
		return false
	}
	l.queue = append(l.queue, p...)
	l.wake.Signal()
	return true
}

// cut ends the copy for the reason given; the first reason stands. The caller holds mu.
func (l *live) cut(reason error) {
	if l.err == nil {
		l.err = reason
	}
	l.queue = nil
	l.wake.Signal()
	l.freed()
}

// freed lets a waiting offer look again.
func (l *live) freed() {
	select {
	case l.room <- struct{}{}:
	default:
	}
}

// run writes what is queued, until the end or the first failure.
func (l *live) run() {
	defer close(l.done)
	var spare []byte
	for {
		p := l.next(spare)
		if p == nil {
			return
		}
		l.write(p)
		spare = p[:0]
	}
}

// next waits for bytes to write and takes all of them; spare becomes the new queue. It returns nil when there will be
// no more.
func (l *live) next(spare []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && !l.ended && l.err == nil {
		l.wake.Wait()
	}
	if l.err != nil || len(l.queue) == 0 {
		return nil
	}
	p := l.queue
	l.queue, l.flight = spare, len(p)
	return p
}

// write calls the writer once. Neither a panic nor runtime.Goexit in foreign code may take the host program down or
// leave the stream waiting, so the bookkeeping is deferred and does not assume that the call returns.
func (l *live) write(p []byte) {
	err := errLiveExit
	defer func() {
		if v := recover(); v != nil {
			err = panicError("live copy cut off: the writer panicked", v)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.flight = 0
		l.freed()
		if err != nil {
			l.cut(err)
		}
	}()
	n, werr := l.w.Write(p)
	switch {
	case werr != nil:
		err = fmt.Errorf("capture: live copy cut off: %w", werr)
	case n != len(p):
		err = fmt.Errorf("capture: live copy cut off: %w", io.ErrShortWrite)
	default:
		err = nil
	}
}

// finish lets the writer have what is queued for at most d, and returns why the copy is not complete, or nil. From then
// on no call to the writer begins.
func (l *live) finish(d time.Duration) error {
	l.mu.Lock()
	l.ended = true
	idle := l.flight == 0 && len(l.queue) == 0
	l.wake.Signal()
	l.mu.Unlock()
	if !idle {
		ended(l.done, d)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && (l.flight > 0 || len(l.queue) > 0) {
		l.cut(ErrLiveSlow)
	}
	return l.err
}

// panicError turns a recovered value into an error, which it wraps if it is one.
func panicError(what string, v any) error {
	if err, ok := v.(error); ok {
		return fmt.Errorf("capture: %s: %w", what, err)
	}
	return fmt.Errorf("capture: %s: %v", what, v)
}
