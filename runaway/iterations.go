// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"context"
	"iter"
)

// Iterations calls Begin in a loop. The last pair has no iteration and the error for which there is no other one, which
// is a *StopError when the run is over.
//
//	for it, err := range governor.Iterations(ctx, estimate) {
//		if err != nil {
//			return err // errors.Is(err, runaway.ErrStopped)
//		}
//		…
//		it.End(outcome)
//	}
//
// An iteration that the loop body does not end has failed, whether it goes on, breaks, returns or ends its goroutine.
// If it panics, the iteration ends as Panicked and the panic goes on.
func (g *Governor) Iterations(ctx context.Context, e Estimate) iter.Seq2[*Iteration, error] {
	return func(yield func(*Iteration, error) bool) {
		for {
			it, err := g.Begin(ctx, e)
			if err != nil {
				yield(nil, err)
				return
			}
			if !it.guard(yield) {
				return
			}
		}
	}
}

// guard runs the loop body and sees to it that the iteration ends.
func (it *Iteration) guard(yield func(*Iteration, error) bool) (more bool) {
	returned := false
	defer func() {
		if returned {
			_ = it.End(Outcome{Kind: Failed}) // ErrLost if the body ended it; a stop is what Begin says next
			return
		}
		if value := recover(); value != nil {
			_ = it.End(Outcome{Kind: Panicked})
			panic(value)
		}
		_ = it.End(Outcome{Kind: Failed}) // runtime.Goexit
	}()
	more = yield(it, nil)
	returned = true
	return more
}
