// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Runaway runs a loop that is killed with SIGKILL in the middle of a step, again and again, and started anew each time, as
// a service manager would do. The cap of iterations and the budget hold over all of its lives.
//
//	go run ./examples/runaway
//
// The loop is this program itself, started once more. The exit code is 0 if the run ended at its cap, else 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/evoseal/containment/runaway"
)

// limits are what the run may do in all its lives together. Nothing in it starts from zero after a crash.
var limits = runaway.Limits{
	MaxIterations: 7,
	Budget:        runaway.Usage{Tokens: 10_000},
	// A step that was killed counts as a failure. This host is expected to be killed often.
	MaxConsecutiveFailures: 5,
}

const loopFlag = "-loop"

func main() {
	ctx := context.Background()
	var err error
	if len(os.Args) == 3 && os.Args[1] == loopFlag {
		err = loop(ctx, os.Args[2], os.Stdout)
	} else {
		err = run(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "runaway:", err)
		os.Exit(1)
	}
}

// run starts the loop until it ends by itself.
func run(ctx context.Context, w io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "runaway-example-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	runs := filepath.Join(dir, "runs")
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for life := 1; ; life++ {
		fmt.Fprintf(w, "life %d\n", life)
		cmd := exec.CommandContext(ctx, self, loopFlag, runs)
		cmd.Env = []string{} // it needs none
		cmd.Stdout, cmd.Stderr = w, w
		err := cmd.Run()
		if err == nil {
			break
		}
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL || life > limits.MaxIterations {
			return fmt.Errorf("life %d: %w", life, err)
		}
		fmt.Fprintln(w, "  killed")
	}
	return goOn(ctx, w, runs)
}

// loop is one life. It is killed after every second step that succeeds, in the middle of the next one.
func loop(ctx context.Context, runs string, w io.Writer) error {
	g, err := open(ctx, runs, limits, nil)
	if err != nil {
		return err
	}
	defer g.Close(ctx)
	good := 0
	for it, err := range g.Iterations(ctx, runaway.Estimate{Tokens: 1000}) {
		if stop, ok := errors.AsType[*runaway.StopError](err); ok {
			s := g.Status()
			fmt.Fprintf(w, "  stopped for %v: %d begun, %d accepted, %d tokens charged\n",
				stop.Reason, s.Attempts, s.Accepted, s.Spent.Tokens)
			return nil
		} else if err != nil {
			return err
		}
		fmt.Fprintf(w, "  iteration %d begins\n", it.Number())
		if good == 2 {
			// No deferred function runs and no buffer is written. The kernel delivers the signal before the call returns.
			if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
				return err
			}
			select {}
		}
		if err := it.Spend(runaway.Usage{Tokens: 600}); err != nil {
			return err
		}
		if err := it.End(runaway.Outcome{Kind: runaway.Accepted, Head: runaway.Fingerprint{byte(it.Number())}}); err != nil {
			return err
		}
		good++
	}
	return nil
}

// goOn starts the loop once more, first as if nothing had been, then with the consent of a person.
func goOn(ctx context.Context, w io.Writer, runs string) error {
	more := limits
	more.MaxIterations++
	g, err := open(ctx, runs, more, nil)
	if err == nil {
		return errors.Join(errors.New("the stop was forgotten"), g.Close(ctx))
	}
	stop, ok := errors.AsType[*runaway.StopError](err)
	if !ok {
		return err
	}
	fmt.Fprintf(w, "another start, with a cap of %d: refused, it stopped for %v\n", more.MaxIterations, stop.Reason)
	g, err = open(ctx, runs, more, &runaway.Amendment{
		By: "operator", Reason: "one more step, to see what it does", Lift: stop.Reason,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "the same with an amendment: open, iteration %d may begin\n", g.Status().Attempts+1)
	return g.Close(ctx)
}

func open(ctx context.Context, runs string, l runaway.Limits, a *runaway.Amendment) (*runaway.Governor, error) {
	store, err := runaway.FileStore(runs)
	if err != nil {
		return nil, err
	}
	return runaway.Open(ctx, "example", l, store, &runaway.Options{Metered: runaway.MeterTokens, Amendment: a})
}
