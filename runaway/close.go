// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-multierror"
)

// closeTime is how long Close waits at most.
const closeTime = 10 * time.Second

// Close ends the session: contexts are cancelled, what is open is recorded as Failed, everything is made durable, and
// the store is given back. It does not wait for iterations: a *LeakError names those that were open. It returns
// within its context or 10 s, whatever hangs. A second call is ErrClosed.
//
// Close of a child ends the child alone.
func (g *Governor) Close(ctx context.Context) error {
	if g == nil || g.run == nil {
		return ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	type result struct {
		leak *LeakError
		errs *multierror.Error
	}
	done := make(chan result, 1)
	go func() {
		leak, errs := g.close()
		done <- result{leak, errs}
	}()
	var res result
	select {
	case res = <-done:
	case <-ctx.Done():
		return fmt.Errorf("runaway: close of run %q: the store or the lock hangs: %w", g.run.RunID, context.Cause(ctx))
	}
	if res.leak == nil {
		return ErrClosed
	}
	if g.host == 0 && g.run.out != nil {
		select {
		case <-g.run.out.gone:
		case <-ctx.Done():
			res.leak.Observer = true
		}
		g.run.out.cancel()
	}
	if len(res.leak.Iterations) > 0 || res.leak.Observer {
		res.errs = multierror.Append(res.errs, res.leak)
	}
	return join(res.errs)
}

// close does all of it but waiting for the observer. It returns nil if there is nothing to close.
func (g *Governor) close() (*LeakError, *multierror.Error) {
	r, err := g.enter()
	if err != nil {
		return nil, nil
	}
	leak := &LeakError{RunID: r.RunID, Iterations: r.open(g.scope)}
	var errs *multierror.Error
	for _, s := range r.deepestFirst() {
		if !s.within(g.scope) {
			continue
		}
		for _, sl := range slices.Clone(s.Open) {
			r.emit(Event{Kind: EventLeaked, Scope: s.Path, Iteration: sl.N})
			errs = multierror.Append(errs, r.end(s, sl, &Outcome{Kind: Failed}, false))
		}
	}
	errs = multierror.Append(errs, r.commit(&Record{Op: OpClose, Scope: g.scope.Path}, true))
	if g.host != 0 {
		r.unlock()
		return leak, errs
	}
	return leak, multierror.Append(errs, r.shut())
}

// join leaves a single error as it is.
func join(errs *multierror.Error) error {
	if errs == nil {
		return nil
	}
	all := slices.DeleteFunc(errs.Errors, func(err error) bool { return err == nil })
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return &multierror.Error{Errors: all}
}

// shut ends the session of the whole run, and gives up the lock.
func (r *run) shut() error {
	r.emit(Event{Kind: EventClosed, Iteration: r.root().Begun})
	r.closed = true
	r.setRunning(false)
	if headed, ok := r.store.(Headed); ok {
		r.head = headed.Head()
	}
	if r.out != nil {
		close(r.out.events)
	}
	r.broadcast()
	close(r.quit)
	r.unlock()

	<-r.watched
	return r.store.Close() // nobody else uses it any more, and it may hang
}
