// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/evoseal/containment/executor"
)

// held is a run that stands at its attack and waits for the host, which looks at it from outside meanwhile.
type held struct {
	s     *scene
	stdin *io.PipeWriter
	out   *liveBuffer
	done  chan struct{}
	res   *executor.Result
	err   error
	stop  context.CancelFunc
}

// hold starts a payload that says "reached" and then waits for its input to end, and returns when it has said so.
func (s *scene) hold(payload string, j job, tune func(*executor.Spec)) (*held, error) {
	r, w := io.Pipe()
	h := &held{s: s, stdin: w, out: &liveBuffer{}, done: make(chan struct{})}
	spec := s.spec(payload, j)
	spec.Stdin = io.MultiReader(bytes.NewReader(s.jobLine(j)), r)
	spec.Stdout = h.out
	if tune != nil {
		tune(&spec)
	}
	var ctx context.Context
	ctx, h.stop = context.WithCancel(s.ctx)
	s.later(h.end)
	go func() {
		defer close(h.done)
		h.res, h.err = s.ex.Run(ctx, spec)
	}()
	if !eventually(patience, h.ready) || h.over() && !h.atAttack() {
		h.stop()
		return nil, inconclusive(s.name, "the payload did not reach its attack: %s", h.describe())
	}
	return h, nil
}

// ready reports that there is nothing more to wait for.
func (h *held) ready() bool { return h.atAttack() || h.over() }

// atAttack looks at the live copy, which is all that there is before the end.
func (h *held) atAttack() bool {
	return slices.Contains(answers(h.out.Bytes(), "reached"), proofOf(h.s.nonce))
}

// over reports whether Run has returned.
func (h *held) over() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// release lets the payload go and returns the result of the run.
func (h *held) release() (*executor.Result, error) {
	_ = h.stdin.Close()
	return h.result()
}

// cancel ends the run's context and returns what Run makes of it, and how long that took.
func (h *held) cancel() (*executor.Result, time.Duration, error) {
	start := time.Now()
	h.stop()
	res, err := h.result()
	return res, time.Since(start), err
}

// result waits for Run, for as long as the case may take.
func (h *held) result() (*executor.Result, error) {
	select {
	case <-h.done:
	case <-h.s.ctx.Done():
		return nil, h.s.breach("Run did not return: %v", h.s.ctx.Err())
	}
	if h.err != nil {
		return nil, inconclusive(h.s.name, "Run: %w", h.err)
	}
	if h.res == nil {
		return nil, h.s.breach("Run returned neither a result nor an error")
	}
	return h.res, nil
}

// end is the clean-up: a scene must not close while one of its runs is under way.
func (h *held) end() {
	_ = h.stdin.Close()
	h.stop()
	select {
	case <-h.done:
	case <-time.After(grace):
	}
}

// describe shows how far the run came.
func (h *held) describe() string {
	switch {
	case !h.over():
		return fmt.Sprintf("still running, live output %.300q", h.out.Bytes())
	case h.err != nil || h.res == nil:
		return fmt.Sprintf("Run: %v", h.err)
	}
	return describe(h.res)
}

// liveBuffer collects a live copy. It is bounded, because it may meet a flood.
type liveBuffer struct {
	mu  sync.Mutex
	buf []byte
}

const liveBufferSize = 256 << 10

// Write never fails and never blocks, so that it has no part in the verdict.
func (b *liveBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf = append(b.buf, p[:min(len(p), liveBufferSize-len(b.buf))]...)
	return len(p), nil
}

// Bytes returns a copy of what came so far.
func (b *liveBuffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf)
}
