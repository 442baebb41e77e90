// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"io"
	"os"
	"sync"
	"time"
)

const (
	firstRead = 512      // most runs print less than this, and a run must not cost more than it prints
	bigRead   = 64 << 10 // what a pipe holds by default
	// stopGrace bounds the wait for a reader that was told to stop. Only a file without deadlines uses it up.
	stopGrace = 100 * time.Millisecond
	// liveGrace bounds the wait for the live copy after the end of the stream.
	liveGrace = 100 * time.Millisecond
)

// Options say what is kept and who is told. The zero value keeps nothing and allows nothing.
type Options struct {
	// Keep is the number of bytes kept from the beginning of the stream and, again, from its end.
	Keep int
	// Limit is the number of bytes that the stream may have. The first byte beyond it makes it Exceeded; there is no
	// value that means "unlimited".
	Limit int64
	// OnLimit, if not nil, is called once when Limit is exceeded, by the goroutine that drains: it must not block.
	OnLimit func()
	// Live, if not nil, gets a copy of the first Limit bytes while they arrive. See [Result.LiveErr].
	Live io.Writer
}

// Result is what is known of a stream after its end.
type Result struct {
	Head []byte // the first bytes, at most Keep
	Tail []byte // the last bytes that are not in Head, at most Keep
	// Total counts every byte that was read, kept or not.
	Total     int64
	Truncated bool // bytes between Head and Tail are missing
	Exceeded  bool // Total is greater than Limit
	// LiveErr says why the live copy is not complete: the writer failed, panicked or did not keep up.
	LiveErr error
	// Incomplete: the end of the stream was not seen. Somebody may still hold the other end, and bytes that nobody has
	// read may be in the pipe.
	Incomplete bool
}

// Stream drains one pipe. Its methods may be called from any goroutine.
type Stream struct {
	r        *os.File // nil: somebody writes
	o        Options
	live     *live         // nil without Options.Live
	done     chan struct{} // closed when draining has ended
	finish   sync.Once
	finished Result // set by finish

	mu       sync.Mutex // guards what follows; never held while reading, writing or calling anybody
	keep     keeper
	exceeded bool
	eof      bool
	stopped  bool // Finish has taken its result; what comes later is not looked at
}

// Start begins to drain r, the read end of a pipe, and owns it from now on. r must support deadlines, as the files from
// os.Pipe do: otherwise a process that holds the other end can keep one goroutine and r itself beyond Finish.
func Start(r *os.File, o Options) *Stream {
	s := newStream(o)
	s.r = r
	go s.drain()
	return s
}

func newStream(o Options) *Stream {
	s := &Stream{o: o, done: make(chan struct{})}
	s.keep.max = max(o.Keep, 0)
	s.o.Limit = max(o.Limit, 0)
	if o.Live != nil {
		s.live = startLive(o.Live)
	}
	return s
}

// drain reads until the end, an error, or the deadline that Finish sets, also after the limit, so that the process on the
// other side never blocks in a write for longer than the patience with a live writer.
func (s *Stream) drain() {
	defer close(s.done)
	for {
		// The space lies beyond what Finish may be looking at, so reading into it needs no lock.
		s.mu.Lock()
		buf := s.keep.space()
		s.mu.Unlock()
		n, err := s.r.Read(buf)
		if n > 0 && !s.take(buf[:n]) {
			return
		}
		if err != nil {
			s.mu.Lock()
			s.eof = err == io.EOF // any other error is not an end that was seen
			s.mu.Unlock()
			return
		}
	}
}

// take accounts for p, which was read into the space that the keeper offered. It reports whether anybody still wants
// more.
func (s *Stream) take(p []byte) bool {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return false
	}
	allowed := min(int64(len(p)), s.o.Limit-min(s.keep.total, s.o.Limit))
	s.keep.add(p)
	fire := s.keep.total > s.o.Limit && !s.exceeded
	s.exceeded = s.exceeded || fire
	s.mu.Unlock()
	if s.live != nil && allowed > 0 {
		s.live.offer(p[:allowed])
	}
	if fire && s.o.OnLimit != nil {
		s.o.OnLimit()
	}
	return true
}

// Finish is called when the process tree is dead. It waits for the end of the stream at most timeout, closes the pipe,
// waits a bounded time for the live copy (a tenth of a second), and returns. After that Options.Live is never called
// again, unless a call was already under way. Later calls return the same result.
func (s *Stream) Finish(timeout time.Duration) Result {
	s.finish.Do(func() {
		s.await(timeout)
		s.conclude()
	})
	return s.finished
}

// conclude takes the result; what comes later is not looked at.
func (s *Stream) conclude() {
	s.mu.Lock()
	s.stopped = true
	s.finished = s.keep.result()
	s.finished.Exceeded = s.exceeded
	s.finished.Incomplete = !s.eof
	s.mu.Unlock()
	if s.r != nil {
		_ = s.r.Close() // only read from: nothing can be lost
	}
	if s.live != nil {
		s.finished.LiveErr = s.live.finish(liveGrace)
	}
}

// await returns when draining has ended, which it forces after timeout.
func (s *Stream) await(timeout time.Duration) {
	if ended(s.done, timeout) {
		return
	}
	// The error is deliberately not looked at: without deadlines the second wait runs out, and the result says Incomplete.
	_ = s.r.SetReadDeadline(time.Now())
	ended(s.done, stopGrace)
}

// ended waits for done at most d and reports whether it was closed. The timer is made only if it is needed.
func ended(done <-chan struct{}, d time.Duration) bool {
	select {
	case <-done:
		return true
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
