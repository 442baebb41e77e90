// SPDX-License-Identifier: Apache-2.0

package capture_test

import (
	"errors"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evoseal/containment/internal/capture"
)

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

var errBroken = errors.New("broken")

func TestLiveWriterFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		write writerFunc
		want  error // nil: any error
	}{
		{"error", func([]byte) (int, error) { return 0, errBroken }, errBroken},
		{"error with all written", func(p []byte) (int, error) { return len(p), errBroken }, errBroken},
		{"short", func(p []byte) (int, error) { return len(p) - 1, nil }, io.ErrShortWrite},
		{"impossible count", func(p []byte) (int, error) { return len(p) + 1, nil }, io.ErrShortWrite},
		{"panic with an error", func([]byte) (int, error) { panic(errBroken) }, errBroken},
		{"panic with a text", func([]byte) (int, error) { panic("broken") }, nil},
		{"ends its goroutine", func([]byte) (int, error) { runtime.Goexit(); return 0, nil }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, w := pipe(t)
			var calls atomic.Int32
			s := capture.Start(r, capture.Options{Keep: 1 << 20, Limit: 1 << 20, Live: writerFunc(func(p []byte) (int, error) {
				calls.Add(1)
				return tt.write(p)
			})})
			write(w, make([]byte, 300_000))
			got := s.Finish(long)
			if got.LiveErr == nil || tt.want != nil && !errors.Is(got.LiveErr, tt.want) {
				t.Errorf("live error %v, want one that matches %v", got.LiveErr, tt.want)
			}
			if got.Total != 300_000 || got.Incomplete {
				t.Errorf("the stream itself suffered: total %d, incomplete %t", got.Total, got.Incomplete)
			}
			if calls.Load() != 1 {
				t.Errorf("the writer was called %d times after its failure", calls.Load()-1)
			}
		})
	}
}

// A writer that never returns must hold neither the payload nor Finish, and its goroutine ends with its call.
func TestLiveWriterBlocks(t *testing.T) {
	before := runtime.NumGoroutine()
	r, w := pipe(t)
	release, calls := make(chan struct{}), atomic.Int32{}
	s := capture.Start(r, capture.Options{Keep: 10, Limit: 64 << 20, Live: writerFunc(func(p []byte) (int, error) {
		calls.Add(1)
		<-release
		return len(p), nil
	})})
	write(w, make([]byte, 4<<20))
	finished := make(chan capture.Result, 1)
	go func() { finished <- s.Finish(long) }()
	select {
	case got := <-finished:
		if !errors.Is(got.LiveErr, capture.ErrLiveSlow) || got.Total != 4<<20 || got.Incomplete {
			t.Errorf("live error %v, total %d, incomplete %t", got.LiveErr, got.Total, got.Incomplete)
		}
	case <-time.After(long):
		t.Fatal("Finish waits for the live writer")
	}
	close(release)
	settle(t, before)
	if calls.Load() != 1 {
		t.Errorf("the writer was called %d times", calls.Load())
	}
}

// A writer that is only slow at the end, with little queued, is waited for a bounded time.
func TestLiveWriterPendingAtEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	r, w := pipe(t)
	release := make(chan struct{})
	s := capture.Start(r, capture.Options{Keep: 10, Limit: 100, Live: writerFunc(func(p []byte) (int, error) {
		<-release
		return len(p), nil
	})})
	write(w, []byte("x"))
	got := s.Finish(long)
	close(release)
	if !errors.Is(got.LiveErr, capture.ErrLiveSlow) {
		t.Errorf("live error %v, want ErrLiveSlow", got.LiveErr)
	}
	settle(t, before)
}

// settle fails if more goroutines than before stay.
func settle(t *testing.T, before int) {
	t.Helper()
	for end := time.Now().Add(long); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, before %d:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

func TestNoGoroutineStays(t *testing.T) {
	before := runtime.NumGoroutine()
	for i := range 200 {
		r, w := pipe(t)
		s := capture.Start(r, capture.Options{Keep: 10, Limit: 3, Live: io.Discard, OnLimit: func() {}})
		if i%2 == 0 {
			write(w, []byte("some"), []byte(" text"))
		}
		s.Finish(0)
		_ = w.Close()
	}
	settle(t, before)
}
