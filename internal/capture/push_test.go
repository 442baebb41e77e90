// SPDX-License-Identifier: Apache-2.0

package capture_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/internal/capture"
)

// What was pushed is kept, counted and copied like what was read from a pipe.
func TestPush(t *testing.T) {
	t.Parallel()
	src := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var all, live bytes.Buffer
		keep, limit, fired := src.IntN(1<<src.IntN(14)), src.Int64N(100_000), 0
		p := capture.Push(capture.Options{Keep: keep, Limit: limit, Live: &live, OnLimit: func() { fired++ }})
		for range src.IntN(20) {
			chunk := make([]byte, src.IntN(1<<src.IntN(15)))
			for i := range chunk {
				chunk[i] = byte(src.Uint32())
			}
			all.Write(chunk)
			if n, err := p.Write(chunk); n != len(chunk) || err != nil {
				t.Fatalf("%d of %d bytes, %v", n, len(chunk), err)
			}
			clear(chunk) // it is not kept
		}
		p.End()
		got, want := p.Finish(), oracle(all.Bytes(), keep, limit)
		if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" {
			t.Fatalf("keep %d, limit %d (-want +got):\n%s", keep, limit, diff)
		}
		if wantLive := all.Bytes()[:min(int64(all.Len()), limit)]; !bytes.Equal(live.Bytes(), wantLive) || fired > 1 {
			t.Errorf("live copy has %d bytes, want %d; OnLimit was called %d times", live.Len(), len(wantLive), fired)
		}
	}
}

// Without an end the result says so, and a second Finish is the first.
func TestPushWithoutEnd(t *testing.T) {
	t.Parallel()
	p := capture.Push(capture.Options{Keep: 10, Limit: 10})
	_, _ = p.Write([]byte("some")) // never fails
	if got := p.Finish(); !got.Incomplete || string(got.Head) != "some" {
		t.Errorf("%+v", got)
	}
	_, _ = p.Write([]byte("more"))
	if got := p.Finish(); string(got.Head) != "some" || got.Total != 4 {
		t.Errorf("after the end: %+v", got)
	}
}

// A live writer that hangs delays the stream once, and is cut off.
func TestPushSlowLive(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	p := capture.Push(capture.Options{Keep: 10, Limit: 64 << 20, Live: hanging(release)})
	for range 64 {
		_, _ = p.Write(make([]byte, 64<<10))
	}
	p.End()
	if got := p.Finish(); got.Total != 4<<20 || !errors.Is(got.LiveErr, capture.ErrLiveSlow) {
		t.Errorf("%d bytes, %v", got.Total, got.LiveErr)
	}
}

type hanging chan struct{}

func (h hanging) Write(p []byte) (int, error) {
	<-h
	return len(p), nil
}
