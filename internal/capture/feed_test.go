// SPDX-License-Identifier: Apache-2.0

package capture_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/evoseal/containment/internal/capture"
)

func TestFeed(t *testing.T) {
	t.Parallel()
	data := make([]byte, 3<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data) // never fails
	for name, src := range map[string]io.Reader{
		"plain":     bytes.NewReader(data),
		"data+EOF":  iotest.DataErrReader(bytes.NewReader(data)),
		"half":      iotest.HalfReader(bytes.NewReader(data)),
		"only read": struct{ io.Reader }{bytes.NewReader(data)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w := pipe(t)
			f := capture.Feed(w, src)
			got, err := io.ReadAll(r)
			if err != nil || sha256.Sum256(got) != sha256.Sum256(data) {
				t.Errorf("%d bytes of %d arrived, or others: %v", len(got), len(data), err)
			}
			if err := f.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFeedReaderFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		src  io.Reader
		want error // nil: any error
	}{
		{"error", io.MultiReader(strings.NewReader("part"), iotest.ErrReader(errBroken)), errBroken},
		{"panic", readerFunc(func([]byte) (int, error) { panic(errBroken) }), errBroken},
		{"ends its goroutine", readerFunc(func([]byte) (int, error) { runtime.Goexit(); return 0, nil }), nil},
		{"no progress", readerFunc(func([]byte) (int, error) { return 0, nil }), io.ErrNoProgress},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, w := pipe(t)
			f := capture.Feed(w, tt.src)
			if _, err := io.ReadAll(r); err != nil { // ends, because the pipe is closed all the same
				t.Error(err)
			}
			if err := f.Stop(); err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %v, want an error that matches %v", err, tt.want)
			}
		})
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A payload that does not read its input, or goes away, is no error and keeps nothing.
func TestFeedStopWhileWriting(t *testing.T) {
	before := runtime.NumGoroutine()
	_, w := pipe(t)
	var given atomic.Int64
	f := capture.Feed(w, readerFunc(func(p []byte) (int, error) { // endless
		given.Add(int64(len(p)))
		return len(p), nil
	}))
	// The reader is no longer asked when the pipe is full: then the copier is blocked in its write.
	for last, end := int64(-1), time.Now().Add(long); given.Load() != last || last == 0; time.Sleep(50 * time.Millisecond) {
		if last = given.Load(); time.Now().After(end) {
			t.Fatal("the pipe does not fill up")
		}
	}
	if err := f.Stop(); err != nil {
		t.Error(err)
	}
	settle(t, before)
}

func TestFeedReaderOfPipeGone(t *testing.T) {
	before := runtime.NumGoroutine()
	r, w := pipe(t)
	_ = r.Close()
	f := capture.Feed(w, strings.NewReader("nobody reads this"))
	settle(t, before)
	if err := f.Stop(); err != nil {
		t.Errorf("EPIPE was reported: %v", err)
	}
}

// Stop does not wait for a reader that blocks.
func TestFeedStopWhileReading(t *testing.T) {
	before := runtime.NumGoroutine()
	_, w := pipe(t)
	release, reading := make(chan struct{}), make(chan struct{})
	f := capture.Feed(w, readerFunc(func([]byte) (int, error) {
		close(reading)
		<-release
		return 0, io.EOF
	}))
	<-reading
	stopped := make(chan error, 1)
	go func() { stopped <- f.Stop() }()
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(long):
		t.Error("Stop waits for the reader")
	}
	close(release)
	settle(t, before)
}
