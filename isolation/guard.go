// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// What becomes of a call into code that is not ours.
var (
	errGoexit    = errors.New("it ended its goroutine")
	errAbandoned = errors.New("it did not return after its time was up, and was abandoned")
)

// panicError is a panic that was caught.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// guarded calls f on a goroutine of its own, so that neither a panic nor runtime.Goexit in it ends ours, and waits for
// it however long it takes: f is ours, or bounds itself.
func guarded(f func()) error {
	_, err := called(context.Background(), 0, func(context.Context) (struct{}, error) {
		f()
		return struct{}{}, nil
	})
	return err
}

// called is guarded for what may never return: grace after the context has ended, it is abandoned. Nothing that it
// returns later is looked at.
func called[T any](ctx context.Context, grace time.Duration, f func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		r := result{err: errGoexit}
		defer func() {
			if v := recover(); v != nil {
				r.err = &panicError{v, debug.Stack()}
			}
			done <- r
		}()
		r.value, r.err = f(ctx)
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.value, r.err
	case <-timer.C:
		var none T
		return none, errors.Join(errAbandoned, context.Cause(ctx))
	}
}
