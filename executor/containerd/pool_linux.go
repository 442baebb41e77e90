// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/evoseal/containment/executor"
)

// pool keeps boxes ready, each up to the first word of its process 1. A box fits a run only if the run would have got
// exactly such a box; what fits nobody any more is destroyed. A box is handed out once.
type pool struct {
	ex      *Executor
	size    int
	maxIdle time.Duration
	wake    chan struct{}
	stop    context.CancelFunc
	fillers sync.WaitGroup
	burying chan struct{} // one for each box that is being removed beside runs

	mu     sync.Mutex
	kind   *kind        // what boxes are made for; nil before the first run
	ready  []*container // oldest first
	making int
	closed bool
	failed []error // boxes that could not be removed, for Close
}

// kind is what boxes have in common that can stand in for each other.
type kind struct {
	key  string
	plan plan
	busy time.Duration // from the job to the last word
}

// idleMargin is how much longer process 1 waits than we let a box wait: a job must not meet its end.
const idleMargin = 15 * time.Second

// newPool returns nil if no box is to be kept.
func newPool(e *Executor) *pool {
	w := e.config.Warm
	if w.Size == 0 {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &pool{
		ex: e, size: w.Size, maxIdle: w.MaxIdle, wake: make(chan struct{}, 1), stop: stop, burying: make(chan struct{}, w.Size),
	}
	for range w.Fillers {
		p.fillers.Go(func() { p.fill(ctx) })
	}
	return p
}

// kindOf leaves out what differs from box to box, and rounds the time: process 1 has its last deadline from its beginning,
// the run's own come with the job.
func kindOf(p plan, busy time.Duration) *kind {
	p.FirstID, p.Cgroup, p.Supervisor = 0, "", ""
	k := &kind{plan: p, busy: (busy + time.Minute - 1).Truncate(time.Minute)}
	text, err := json.Marshal(struct {
		Plan plan
		Busy time.Duration
	}{p, k.busy})
	if err != nil {
		panic(err) // plain data
	}
	k.key = string(text)
	return k
}

// take returns a box for a run, or nil. Boxes of another kind are given up: what was run last is run next.
func (p *pool) take(wanted plan, busy time.Duration) *container {
	if p == nil {
		return nil
	}
	k := kindOf(wanted, busy)
	p.mu.Lock()
	var useless []*container
	if p.kind == nil || p.kind.key != k.key {
		p.kind, useless, p.ready = k, p.ready, nil
	}
	var found *container
	for found == nil && len(p.ready) > 0 {
		c := p.ready[0]
		p.ready = p.ready[1:]
		if c.running() && time.Since(c.made) < p.maxIdle {
			found = c
		} else {
			useless = append(useless, c)
		}
	}
	p.mu.Unlock()
	p.nudge()
	p.discard(useless)
	return found
}

// nudge wakes a filler.
func (p *pool) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// discard destroys boxes that nobody gets, beside everything else.
func (p *pool) discard(boxes []*container) {
	for _, c := range boxes {
		p.fillers.Go(func() { p.report(c.destroy(context.Background())) })
	}
}

// bury removes a box of which no process is alive, beside everything else. It returns false if as many as the pool has are
// being removed already: who makes boxes faster than they go has to wait for them.
func (p *pool) bury(c *container) bool {
	if p == nil {
		return false
	}
	select {
	case p.burying <- struct{}{}:
	default:
		return false
	}
	p.fillers.Go(func() {
		defer func() { <-p.burying }()
		p.report(c.destroy(context.Background()))
	})
	return true
}

// maxFailed bounds what Close returns.
const maxFailed = 32

// report logs what went wrong outside of runs, and keeps what is left for Close.
func (p *pool) report(err error) {
	if err == nil {
		return
	}
	p.ex.config.Logger.Warn("a box could not be kept warm or be removed", slog.Any("error", err))
	if _, left := errors.AsType[*executor.CleanupError](err); !left {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.failed) < maxFailed {
		p.failed = append(p.failed, err)
	}
}

// Pauses of a filler: between two looks at the age of boxes, and after failures, doubled each time.
const (
	lookEvery  = time.Second
	firstPause = 100 * time.Millisecond
	lastPause  = 30 * time.Second
)

// fill makes boxes until the pool is closed.
func (p *pool) fill(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	pause := firstPause
	for {
		made, err := p.one(ctx)
		if err != nil && ctx.Err() != nil {
			if _, left := errors.AsType[*executor.CleanupError](err); left {
				p.report(err)
			}
			return
		}
		if err != nil {
			p.report(err)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			pause = min(2*pause, lastPause)
			continue
		}
		if made {
			pause = firstPause
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-tick.C:
			p.discard(p.aged())
		}
	}
}

// one makes a box if one is missing.
func (p *pool) one(ctx context.Context) (made bool, err error) {
	p.mu.Lock()
	k := p.kind
	if k == nil || p.closed || len(p.ready)+p.making >= p.size {
		p.mu.Unlock()
		return false, nil
	}
	p.making++
	p.mu.Unlock()
	idle := p.maxIdle + idleMargin
	c, err := p.ex.create(ctx, k.plan, deadlines{idle: idle, hard: idle + k.busy}, "warm")
	p.mu.Lock()
	p.making--
	keep := err == nil && !p.closed && p.kind.key == k.key
	if keep {
		p.ready = append(p.ready, c)
	}
	p.mu.Unlock()
	if err == nil && !keep {
		err = c.destroy(ctx)
	}
	return err == nil, err
}

// aged takes out the boxes that have waited too long, or have ended.
func (p *pool) aged() (old []*container) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = slices.DeleteFunc(p.ready, func(c *container) bool {
		gone := !c.running() || time.Since(c.made) >= p.maxIdle
		if gone {
			old = append(old, c)
		}
		return gone
	})
	return old
}

// close destroys every box that waits. No run may be under way.
func (p *pool) close() error {
	p.stop()
	p.mu.Lock()
	p.closed = true
	boxes := p.ready
	p.ready = nil
	p.mu.Unlock()
	p.fillers.Wait()
	errs := p.failed // nobody else is there
	for _, c := range boxes {
		errs = append(errs, c.destroy(context.Background()))
	}
	return errors.Join(errs...)
}
