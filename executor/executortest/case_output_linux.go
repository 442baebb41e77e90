// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"bytes"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/evoseal/containment/executor"
)

// outputCases attack whoever reads the output: its memory, its patience and its honesty.
func outputCases() []Case {
	bounded := executor.OutputBounded
	return []Case{
		alone(attack("output-flood", "output without end fills the host's memory", bounded, floods("out"))),
		alone(attack("output-flood-stderr", "a limit on one stream is no limit", bounded, floods("err"))),
		alone(attack("output-flood-both", "two streams at once must not wait for each other", bounded, floods("both"))),
		alone(attack("hold-pipe", "at the time limit a grandchild holds stdout, and Wait waits for it", bounded, holdPipe)),
		alone(attack("hold-pipe-exit", "a daemon that keeps stdout open must not keep a finished run",
			bounded, holdPipeExit)),
		check("output-exact", "head and tail must be the bytes that were written, and the total all of them",
			bounded, outputExact),
		check("live-slow", "a writer that blocks must not hold the run up", bounded, liveSlow),
		check("live-fail", "a writer that fails must not change the result", bounded, liveFail),
	}
}

const outputLimit = 1 << 20

// floods writes far more than the limit and watches this process's heap meanwhile.
func floods(stream string) probe {
	return func(s *scene) error {
		spec := s.spec("flood", job{Name: stream, N: 48 << 20})
		spec.Limits.Output = outputLimit
		stop := heapPeak()
		res, err := s.run(spec)
		grown := stop()
		if err != nil {
			return err
		}
		kept := max(len(res.Stdout.Head)+len(res.Stdout.Tail), len(res.Stderr.Head)+len(res.Stderr.Tail))
		switch {
		case kept > 2*executor.CaptureSize:
			return s.breach("%d bytes of one stream are kept, %d are the limit", kept, 2*executor.CaptureSize)
		case grown > outputLimit+4<<20+4*executor.CaptureSize:
			return s.breach("the heap grew by %d bytes", grown)
		case max(res.Stdout.Total, res.Stderr.Total) < outputLimit:
			return inconclusive(s.name, "the payload wrote less than the limit: %s", describe(res))
		}
		return s.mustEnd(res, executor.CauseOutputLimit)
	}
}

// heapPeak samples the live heap until it is stopped and returns by how much it grew at most.
func heapPeak() (stop func() int64) {
	runtime.GC()
	base, peak := liveHeap(), atomic.Int64{}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			if now := liveHeap(); now > peak.Load() {
				peak.Store(now)
			}
			select {
			case <-quit:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() int64 { close(quit); <-done; return peak.Load() - base }
}

// liveHeap is what the heap holds, garbage that was not collected yet included: a bound must hold for that too.
func liveHeap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// holdTime is how long daemons hold a stream: clearly longer than a run may wait for them.
const holdTime = 2500 * time.Millisecond

// holdPipe ends by the time limit, while daemons still hold the stream that the host reads.
func holdPipe(s *scene) error {
	life := childLife
	if s.control { // which does wait
		life = holdTime
	}
	spec := s.spec("forks", forkJob("detach deaf wait live="+millis(life), 5))
	spec.Limits.Wall = 500 * time.Millisecond
	res, t, err := s.reachWithin(spec)
	if err != nil {
		return err
	}
	if took := t.took - res.Timing.Setup; took > t.limit+late {
		return s.tooLate("the result came %v after the start, under a limit of %v", took, t.limit)
	}
	return s.mustEnd(res, executor.CauseWallTimeout)
}

// holdPipeExit ends by itself under the same circumstances, when it is told to: C9 says when a run is over. Under the
// control everything is shorter, since there the wait is certain.
func holdPipeExit(s *scene) error {
	life, limit := holdTime, 1500*time.Millisecond
	if s.control {
		life, limit = 900*time.Millisecond, 300*time.Millisecond
	}
	h, err := s.hold("forks", forkJob("detach deaf live="+millis(life), 5), nil)
	if err != nil {
		return err
	}
	start := time.Now()
	res, err := h.release()
	if err != nil {
		return err
	}
	if took := time.Since(start); took > limit {
		return s.tooLate("the leader had ended, and Run waited %v", took)
	}
	return s.mustOK(res)
}

// outputExact makes the same bytes on both sides.
func outputExact(s *scene) error {
	const n = 700_001 // no multiple of anything
	res, err := s.run(s.spec("pattern", job{N: n}))
	if err != nil {
		return err
	}
	want := pattern(n)
	out := res.Stdout
	if out.Total != n || !out.Truncated {
		return s.breach("%d of %d bytes were counted, truncated %v", out.Total, n, out.Truncated)
	}
	if !bytes.Equal(out.Head, want[:executor.CaptureSize]) || !bytes.Equal(out.Tail, want[n-executor.CaptureSize:]) {
		return s.breach("head (%d bytes) or tail (%d bytes) is not what was written", len(out.Head), len(out.Tail))
	}
	return s.mustOK(res)
}

// stuckWriter blocks until it is let go.
type stuckWriter struct{ free chan struct{} }

func (w stuckWriter) Write(p []byte) (int, error) { <-w.free; return len(p), nil }

// liveSlow lets the writer hang for as long as the run lasts, and longer.
func liveSlow(s *scene) error {
	w := stuckWriter{make(chan struct{})}
	defer close(w.free)
	spec := s.spec("pattern", job{N: 700_001})
	spec.Stdout = w
	start := time.Now()
	res, err := s.run(spec)
	if err != nil {
		return err
	}
	if took := time.Since(start); took > 12*time.Second {
		return s.tooLate("a writer that blocks held the run up for %v", took)
	}
	if res.Stdout.LiveErr == nil || res.Stdout.Total != 700_001 {
		return s.breach("the cut is not reported (%v), or bytes are lost: %d", res.Stdout.LiveErr, res.Stdout.Total)
	}
	return s.mustOK(res)
}

var errLive = errors.New("executortest: the live writer fails")

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errLive }

// liveFail returns an error at the first byte: it must come back to the caller, and no byte may be lost.
func liveFail(s *scene) error {
	spec := s.spec("pattern", job{N: 700_001})
	spec.Stdout = failingWriter{}
	res, err := s.run(spec)
	if err != nil {
		return err
	}
	if !errors.Is(res.Stdout.LiveErr, errLive) || res.Stdout.Total != 700_001 {
		return s.breach("the writer's error is not reported (%v), or bytes are lost: %d", res.Stdout.LiveErr, res.Stdout.Total)
	}
	return s.mustOK(res)
}
