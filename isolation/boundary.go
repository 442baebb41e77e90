// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/evoseal/containment/executor"
)

// ErrBusy: a step is under way. A Boundary makes one step at a time, and none from within a generator or a judge.
var ErrBusy = errors.New("isolation: a step is under way")

// Boundary is the one path on which a variant is written, run and kept. Open makes one; the zero value does nothing.
type Boundary struct {
	c     Config // with everything filled in; the slices are copies
	dir   string // of the tree, absolute, without links
	log   *Log
	hooks hooks

	decided  settled
	observed Observed
	asked    *GeneratorIdentity // the generator that the decision is about

	proof    proof
	gate     gate
	accepted accepted
	baseline *Baseline
	mark     *mark    // what the log says of it; the baseline is never less
	reports  []string // where the judge reads what the run has written

	mu     sync.Mutex
	busy   chan struct{} // closed when the step is over; nil: there is none
	cancel context.CancelCauseFunc
	closed bool
	lost   error // ErrTreeUnknown: nothing goes on
	stage  Stage // of the step that is under way
}

// proof is the executor in use, and the evidence that it holds.
type proof struct {
	name   string
	ex     executor.Executor
	needs  executor.Capability
	report Report
}

// hooks are for tests.
type hooks struct {
	verify  func(context.Context, executor.Executor, *VerifyOptions) (Report, error)
	current func(context.Context, Report, executor.Executor) error
	at      func(point string) // called before each act; it may end the process
	now     func() time.Time
	grace   time.Duration // for a generator, a judge or an executor that does not return
}

// graceTime is how long a generator or a judge may take to return after its context has ended.
const graceTime = 5 * time.Second

func (h hooks) withDefaults() hooks {
	if h.verify == nil {
		h.verify = Verify
	}
	if h.now == nil {
		h.now = time.Now
	}
	if h.current == nil {
		h.current = func(ctx context.Context, r Report, ex executor.Executor) error { return r.Current(ctx, ex, h.now()) }
	}
	if h.at == nil {
		h.at = func(string) {}
	}
	if h.grace == 0 {
		h.grace = graceTime
	}
	return h
}

func (b *Boundary) at(point string) { b.hooks.at(point) }

// enter begins a step. The context ends with it, and with Close.
func (b *Boundary) enter(ctx context.Context) (context.Context, func(), error) {
	if b == nil {
		return nil, nil, ErrClosed
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed || b.log == nil:
		return nil, nil, ErrClosed
	case b.lost != nil:
		return nil, nil, b.lost
	case b.busy != nil:
		return nil, nil, ErrBusy
	}
	ctx, b.cancel = context.WithCancelCause(ctx)
	cancel := b.cancel
	busy := make(chan struct{})
	b.busy = busy
	return ctx, func() {
		cancel(nil)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.busy, b.stage = nil, StageNone
		close(busy)
	}, nil
}

// closeTime bounds Close where its context does not.
const closeTime = 10 * time.Second

// Close ends the boundary. A step that is under way is cancelled, which restores the tree, and waited for until ctx
// ends, 10 s at most. What Config was made of stays open: it is the caller's. Only the first call has an effect; the
// error matches [ErrBusy] if a step is still under way, and then the next Open finishes what it left.
func (b *Boundary) Close(ctx context.Context) error {
	if b == nil || b.log == nil {
		return ErrClosed
	}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return ErrClosed
	}
	b.closed = true
	busy, cancel := b.busy, b.cancel
	b.mu.Unlock()
	if busy != nil {
		cancel(ErrClosed)
		ctx, stop := context.WithTimeout(ctx, closeTime)
		defer stop()
		select {
		case <-busy:
		case <-ctx.Done():
			go func() { <-busy; _ = b.log.Close() }() // the step still writes to the log
			return fmt.Errorf("%w: it was cancelled and has not ended: %w", ErrBusy, context.Cause(ctx))
		}
	}
	return b.log.Close()
}

// say logs an event.
func (b *Boundary) say(ctx context.Context, level slog.Level, msg string, args ...any) {
	b.c.Logger.Log(ctx, level, msg, append([]any{"run", b.c.RunID}, args...)...)
}

func (b *Boundary) warn(ctx context.Context, msg string, args ...any) {
	b.say(ctx, slog.LevelWarn, msg, args...)
}
