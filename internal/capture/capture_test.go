// SPDX-License-Identifier: Apache-2.0

package capture_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/internal/capture"
)

// long is for what happens at once on a healthy machine: tests wait this long only when they are about to fail.
const long = 20 * time.Second

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Close()
		_ = w.Close()
	})
	return r, w
}

// write writes the chunks and closes w, in a goroutine so that nothing depends on the size of the pipe.
func write(w *os.File, chunks ...[]byte) {
	go func() {
		defer func() { _ = w.Close() }()
		for _, c := range chunks {
			if _, err := w.Write(c); err != nil {
				return
			}
		}
	}()
}

// oracle is the specification in its most naive form: all of the stream in memory.
func oracle(all []byte, keep int, limit int64) capture.Result {
	head := all[:min(keep, len(all))]
	rest := all[len(head):]
	tail := rest[max(0, len(rest)-keep):]
	return capture.Result{
		Head: head, Tail: tail,
		Total:     int64(len(all)),
		Truncated: len(head)+len(tail) < len(all),
		Exceeded:  int64(len(all)) > limit,
	}
}

// check runs the chunks through a pipe and compares everything with the oracle, the live copy and OnLimit included.
func check(t *testing.T, chunks [][]byte, keep int, limit int64) {
	t.Helper()
	all := bytes.Join(chunks, nil)
	r, w := pipe(t)
	var fired atomic.Int32
	var live bytes.Buffer
	s := capture.Start(r, capture.Options{Keep: keep, Limit: limit, Live: &live, OnLimit: func() { fired.Add(1) }})
	write(w, chunks...)
	got := s.Finish(long)
	want := oracle(all, keep, limit)
	if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" {
		t.Fatalf("keep %d, limit %d, %d bytes (-want +got):\n%s", keep, limit, len(all), diff)
	}
	if wantFired := map[bool]int32{true: 1}[want.Exceeded]; fired.Load() != wantFired {
		t.Errorf("OnLimit was called %d times, want %d", fired.Load(), wantFired)
	}
	if wantLive := all[:min(int64(len(all)), limit)]; !bytes.Equal(live.Bytes(), wantLive) {
		t.Errorf("live copy has %d bytes, want the first %d", live.Len(), len(wantLive))
	}
}

func TestBoundaries(t *testing.T) {
	t.Parallel()
	random := rand.NewChaCha8([32]byte{2})
	for _, keep := range []int{0, 1, 7, 511, 512, 513, 4096, 64 << 10} {
		for _, size := range []int{0, 1, keep - 1, keep, keep + 1, 2*keep - 1, 2 * keep, 2*keep + 1, 3*keep + 5} {
			if size < 0 {
				continue
			}
			data := make([]byte, size)
			_, _ = random.Read(data) // never fails; random bytes are mostly not UTF-8, which must survive
			for _, limit := range []int{0, size - 1, size, size + 1} {
				if limit >= 0 {
					check(t, [][]byte{data}, keep, int64(limit))
				}
			}
		}
	}
}

func TestRandomChunks(t *testing.T) {
	t.Parallel()
	src := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var chunks [][]byte
		for range src.IntN(20) {
			chunk := make([]byte, src.IntN(1<<src.IntN(15)))
			for i := range chunk {
				chunk[i] = byte(src.Uint32())
			}
			chunks = append(chunks, chunk)
		}
		check(t, chunks, src.IntN(1<<src.IntN(14)), src.Int64N(100_000))
	}
}

func FuzzCapture(f *testing.F) {
	f.Add([]byte(""), uint16(0), uint16(0), uint8(0))
	f.Add([]byte("hello, world"), uint16(3), uint16(5), uint8(2))
	f.Add(bytes.Repeat([]byte{0xff, 0, 'a'}, 700), uint16(513), uint16(2100), uint8(97))
	f.Fuzz(func(t *testing.T, data []byte, keep, limit uint16, cut uint8) {
		var chunks [][]byte
		// cut makes chunks of changing sizes out of data.
		for step := int(cut); len(data) > 0; step = step*7%251 + 1 {
			n := min(step+1, len(data))
			chunks, data = append(chunks, data[:n]), data[n:]
		}
		check(t, chunks, int(keep), int64(limit))
	})
}

// A negative size is a mistake of the caller; it must not be read as "unlimited".
func TestNegativeOptions(t *testing.T) {
	t.Parallel()
	r, w := pipe(t)
	s := capture.Start(r, capture.Options{Keep: -1, Limit: -1})
	write(w, []byte("x"))
	got := s.Finish(long)
	want := capture.Result{Total: 1, Truncated: true, Exceeded: true}
	if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" {
		t.Error(diff)
	}
}

// After the limit the payload must still be able to write: a full pipe would keep it from ending.
func TestDrainsAfterLimit(t *testing.T) {
	t.Parallel()
	r, w := pipe(t)
	s := capture.Start(r, capture.Options{Keep: 10, Limit: 10})
	const size = 8 << 20
	written := make(chan error, 1)
	go func() {
		_, err := w.Write(make([]byte, size))
		written <- err
		_ = w.Close()
	}()
	select {
	case err := <-written:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(long):
		t.Fatal("the writer is blocked")
	}
	if got := s.Finish(long); got.Total != size || !got.Exceeded || got.Incomplete {
		t.Errorf("total %d, exceeded %t, incomplete %t", got.Total, got.Exceeded, got.Incomplete)
	}
}

// Somebody who holds the other end open must not keep Finish, and the result must say so.
func TestFinishDoesNotWaitForHolder(t *testing.T) {
	t.Parallel()
	r, w := pipe(t)
	s := capture.Start(r, capture.Options{Keep: 100, Limit: 100})
	if _, err := w.WriteString("so far"); err != nil {
		t.Fatal(err)
	}
	finished := make(chan capture.Result, 1)
	go func() { finished <- s.Finish(500 * time.Millisecond) }()
	select {
	case got := <-finished:
		if !got.Incomplete || string(got.Head) != "so far" {
			t.Errorf("incomplete %t, head %q", got.Incomplete, got.Head)
		}
	case <-time.After(long):
		t.Fatal("Finish waits for the holder of the pipe")
	}
	if _, err := w.WriteString("more"); err == nil {
		t.Error("the pipe can still be written to: its read end was not closed")
	}
}

func TestFinishTwice(t *testing.T) {
	t.Parallel()
	r, w := pipe(t)
	s := capture.Start(r, capture.Options{Keep: 10, Limit: 10})
	write(w, []byte("once"))
	first := s.Finish(long)
	if diff := cmp.Diff(first, s.Finish(0)); diff != "" || string(first.Head) != "once" {
		t.Errorf("head %q, difference:\n%s", first.Head, diff)
	}
}

// A file whose Read cannot be interrupted is a mistake of the caller, which must not hold Finish either.
func TestWithoutDeadlines(t *testing.T) {
	t.Parallel()
	r, w := pipe(t)
	r.Fd() // puts the descriptor into blocking mode
	s := capture.Start(r, capture.Options{Keep: 10, Limit: 10})
	finished := make(chan capture.Result, 1)
	go func() { finished <- s.Finish(0) }()
	select {
	case got := <-finished:
		if !got.Incomplete {
			t.Error("the end cannot have been seen")
		}
	case <-time.After(long):
		t.Error("Finish waits for a blocking read")
	}
	_, _ = io.WriteString(w, "let it go") // wakes the reader; whether it still takes the bytes is not of interest
}
