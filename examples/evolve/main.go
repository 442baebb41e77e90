// SPDX-License-Identifier: Apache-2.0

// Evolve is a program that rewrites its own code, hundreds of times, and cannot do harm with it.
//
//	go run ./examples/evolve
//	go run ./examples/evolve -h
//
// What it does, and what came out, is in README.md beside this file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/examples/evolve/internal/command"
	"github.com/evoseal/containment/examples/evolve/internal/openai"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/runaway"
)

// The exit codes, as -h explains them.
const (
	exitBetter  = 0
	exitNothing = 1
	exitUsage   = 2
	exitRefused = 3
	exitStopped = 4
	exitFault   = 5
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	if err == nil {
		err = evolve(ctx, o, stdout, stderr)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) && !errors.Is(err, errNothing) {
		if errors.Is(err, context.Canceled) {
			err = fmt.Errorf("interrupted: %w", err)
		}
		fmt.Fprintln(stderr, "evolve:", err)
	}
	return exitCode(err)
}

// errNothing: the run came to its end without a better variant.
var errNothing = errors.New("nothing better was found")

func exitCode(err error) int {
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return exitBetter
	case errors.Is(err, errNothing):
		return exitNothing
	case errors.Is(err, errUsage), errors.Is(err, allowlist.ErrConfig), errors.Is(err, openai.ErrConfig),
		errors.Is(err, command.ErrConfig):
		return exitUsage
	case errors.Is(err, isolation.ErrDenied), errors.Is(err, executor.ErrUnsupported):
		return exitRefused
	case errors.Is(err, runaway.ErrStopped), errors.Is(err, context.Canceled):
		return exitStopped
	}
	return exitFault
}
