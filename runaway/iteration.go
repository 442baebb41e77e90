// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"context"
	"fmt"
	"time"
)

// Iteration is one admitted step. Its methods may be called at the same time; the zero value, and one that has ended,
// give ErrLost and change nothing, but for what Spend says.
type Iteration struct {
	run   *run
	scope *scope
	n     int
}

// live is what only the session knows in which an iteration began.
type live struct {
	due        time.Duration // when it has taken too long
	waiting    int           // calls of Check that wait in a pause
	waitedFrom time.Duration
	dup        bool // the variant that was asked about last had been seen before
	distrust   bool // it reported a negative amount
	binds      []*binding
}

// spare returns an empty slot. Slots are used again, so that an iteration costs no memory.
func (l *ledger) spare() *slot {
	if n := len(l.free); n > 0 {
		sl := l.free[n-1]
		l.free = l.free[:n-1]
		return sl
	}
	return new(slot)
}

func (l *ledger) release(sl *slot) {
	clear(sl.binds)
	binds := sl.binds[:0]
	*sl = slot{}
	sl.binds = binds
	l.free = append(l.free, sl)
}

// Number counts from 1 over the life of the run, or of the child.
func (it *Iteration) Number() int {
	if it == nil {
		return 0
	}
	return it.n
}

// enter looks at the files, takes the lock, looks at the clocks, and finds the iteration if it is still open. The lock
// is held if and only if the run is returned.
func (it *Iteration) enter(look func(*lookout) sight) (*run, *slot, error) {
	if it == nil || it.run == nil {
		return nil, nil, ErrLost
	}
	seen := look(&it.run.files)
	r := it.run
	r.lock()
	if r.closed {
		r.unlock()
		return nil, nil, fmt.Errorf("%w: %w", ErrLost, ErrClosed)
	}
	r.see(&seen)
	r.enforceTime(it.scope)
	sl := it.scope.slot(it.n)
	if sl == nil {
		return r, nil, fmt.Errorf("%w: iteration %d has ended", ErrLost, it.n)
	}
	it.scope.touch(r.mark)
	return r, sl, nil
}

// Seen reports whether the run has been asked about this variant before, and remembers it. Asking twice gives true. An
// iteration whose last answer was true cannot end as Accepted; it ends as Duplicate. Ask before the expensive part.
//
// With an error the answer is true: ErrLost, ErrNoFingerprint, or a *StopError if the iteration has to end.
func (it *Iteration) Seen(f Fingerprint) (bool, error) {
	if f.IsZero() {
		return true, ErrNoFingerprint
	}
	r, sl, err := it.enter((*lookout).look)
	if r != nil {
		defer r.unlock()
	}
	if err != nil {
		return true, err
	}
	if stop := it.scope.abortedBy(); stop != nil {
		return true, stop
	}
	s := it.scope
	sl.dup = s.Tally.Seen.has(f)
	if sl.dup {
		r.emit(Event{Kind: EventDuplicate, Scope: s.Path, Iteration: it.n, Head: f})
		return true, nil
	}
	rec := r.record(OpSeen, s, it.n)
	rec.Head = f
	if err := r.commit(rec, false); err != nil {
		return true, err
	}
	if stop := r.full(); stop != nil {
		return true, stop
	}
	return false, nil
}

// full stops the run when nothing more can be remembered: what is forgotten could come again and pass for new.
func (r *run) full() error {
	if r.remembered < maxRemembered {
		return nil
	}
	return r.halt(r.root(), finding{ReasonState, fmt.Sprintf("%d fingerprints", maxRemembered),
		fmt.Sprint(r.remembered)}, false,
		"the memory for fingerprints is full; use a new run id", nil)
}

// Check says whether the iteration may go on; nil if so, also after a stop that drains. Call it between steps. In a
// pause it waits; that time does not count for PerIteration. Otherwise it costs a call to the file system for
// each of the files and for each of their directories.
//
// The error is a *StopError, ErrLost, or the cause of the context, which in a pause also matches ErrPaused.
func (it *Iteration) Check(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		wait, err := it.check()
		if err != nil || wait.change == nil {
			return err
		}
		select {
		case <-wait.change:
			it.resumed()
		case <-ctx.Done():
			it.resumed()
			return wait.interrupted(ctx)
		}
	}
}

func (it *Iteration) check() (wait, error) {
	r, sl, err := it.enter((*lookout).look)
	if r != nil {
		defer r.unlock()
	}
	if err != nil {
		return wait{}, err
	}
	if stop := it.scope.abortedBy(); stop != nil {
		return wait{}, stop
	}
	why := r.paused(it.scope)
	if why == "" {
		return wait{}, nil
	}
	if sl.waiting == 0 {
		sl.waitedFrom = r.now
	}
	sl.waiting++
	r.retime()
	return wait{r.change(), why}, nil
}

// resumed ends what check began.
func (it *Iteration) resumed() {
	r := it.run
	r.lock()
	defer r.unlock()
	sl := it.scope.slot(it.n)
	if sl == nil || sl.waiting == 0 {
		return
	}
	if sl.waiting--; sl.waiting == 0 {
		sl.due = later(sl.due, r.now-sl.waitedFrom)
		it.scope.touch(r.mark)
		r.sooner(sl.due)
	}
	r.retime()
}

// Bind derives a context that ends with the iteration's time, with the iteration, or with a stop of the run. Its
// cause is then the *StopError, or an error that matches ErrLost and, if the time was up, context.DeadlineExceeded.
// Call the function when the context is no longer needed.
func (it *Iteration) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	bound, cancel := context.WithCancelCause(ctx)
	b := &binding{cancel}
	r, sl, err := it.enter((*lookout).look)
	if r != nil {
		defer r.unlock()
	}
	if err == nil {
		if stop := it.scope.abortedBy(); stop != nil {
			err = stop
		}
	}
	if err != nil {
		cancel(err)
		return bound, func() {}
	}
	sl.binds = append(sl.binds, b)
	return bound, func() { it.release(b) }
}

type binding struct{ cancel context.CancelCauseFunc }

func (it *Iteration) release(b *binding) {
	r := it.run
	r.lock()
	if sl := it.scope.slot(it.n); sl != nil {
		for i, other := range sl.binds {
			if other == b {
				last := len(sl.binds) - 1
				sl.binds[i], sl.binds[last] = sl.binds[last], nil
				sl.binds = sl.binds[:last]
				break
			}
		}
	}
	r.unlock()
	b.cancel(nil)
}
