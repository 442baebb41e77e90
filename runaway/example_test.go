// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/evoseal/containment/runaway"
)

// A generator that is stuck: it proposes the same variant again and again.
func Example() {
	// The library sets no signal handler; a host that wants to end on Ctrl-C does this.
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	dir, err := os.MkdirTemp("", "runaway-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	store, err := runaway.FileStore(filepath.Join(dir, "runs"))
	if err != nil {
		fmt.Println(err)
		return
	}
	limits := runaway.Limits{
		MaxIterations: 50,
		Budget:        runaway.Usage{Tokens: 100_000},
	}
	g, err := runaway.Open(ctx, "run-1", limits, store, &runaway.Options{Metered: runaway.MeterTokens})
	if err != nil {
		fmt.Println(err)
		return
	}
	for it, err := range g.Iterations(ctx, runaway.Estimate{Tokens: 2000}) {
		if stop, ok := errors.AsType[*runaway.StopError](err); ok {
			fmt.Println("stopped for", stop.Reason, "after", stop.Iteration)
			break
		} else if err != nil {
			fmt.Println(err)
			break
		}
		variant := runaway.Fingerprint{1} // FingerprintTree of the generated tree
		if err := it.Spend(runaway.Usage{Tokens: 1500}); err != nil {
			continue
		}
		if seen, err := it.Seen(variant); seen || err != nil {
			fmt.Println("iteration", it.Number(), "is a duplicate")
			it.End(runaway.Outcome{Kind: runaway.Duplicate})
			continue
		}
		it.End(runaway.Outcome{Kind: runaway.Accepted, Head: variant})
	}
	fmt.Println("spent", g.Status().Spent.Tokens, "tokens")
	if err := g.Close(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// iteration 2 is a duplicate
	// iteration 3 is a duplicate
	// iteration 4 is a duplicate
	// iteration 5 is a duplicate
	// iteration 6 is a duplicate
	// stopped for consecutive-failures after 6
	// spent 9000 tokens
}

// A provider that is down is not the generator's fault. A circuit breaker of the host's choice says so, and the
// iteration ends as Neutral: it is counted, and leaves the row of failures alone.
func ExampleOutcome() {
	ctx := context.Background()
	g, err := runaway.Open(ctx, "run-1", runaway.Limits{MaxNeutral: 3}, runaway.UnsafeMemStore(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.Close(ctx)
	errBreakerOpen := errors.New("circuit breaker is open")
	callProvider := func() error { return errBreakerOpen }
	for it, err := range g.Iterations(ctx, runaway.Estimate{}) {
		if err != nil {
			stop, _ := errors.AsType[*runaway.StopError](err)
			fmt.Println("stopped for", stop.Reason, "with a streak of", g.Status().Streak)
			break
		}
		if err := callProvider(); errors.Is(err, errBreakerOpen) {
			it.End(runaway.Outcome{Kind: runaway.Neutral})
			continue
		}
		it.End(runaway.Outcome{Kind: runaway.Rejected})
	}
	// Output: stopped for neutral with a streak of 0
}
