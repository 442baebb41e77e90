// SPDX-License-Identifier: Apache-2.0

// Command gate runs the tests of every module of the tree, counts what happened and decides. `make test` calls it; it has no
// flags. Started by root it makes three passes: with the race detector, without it what it would only slow down, and
// everything again as an ordinary user, apart from what asks nobody who they are; plan.go says which is which. For an
// ordinary caller there are the first two.
//
// It exits with 0 only if every test passed in every pass in which it was not skipped, every skip came from
// testenv.Need, and no test was skipped in all passes, apart from those that need what "all" demands of nobody. Run by
// an ordinary user it says how many tests that leaves out.
//
// # What it does not do
//
// It formats, vets and installs nothing; the Makefile does. It does not repeat a failed test. Which packages change the host
// it knows from their imports; a test that does so through another program must be told to it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run makes the passes that this caller can make and reports whether the gate is open.
func run(ctx context.Context) (ok bool, err error) {
	modules, err := listModules(ctx)
	if err != nil {
		return false, err
	}
	root := os.Getuid() == 0
	name := "root"
	if !root {
		fmt.Println("gate: not root, so only the passes as an ordinary user are made")
		name = "ordinary user"
	}
	passes := []pass{
		{name: name + ", race", modules: modules, part: raced},
		{name: name, modules: modules, part: unraced},
	}
	if root {
		ordinary, remove, prepareErr := prepareOrdinary(ctx, modules)
		defer func() { err = errors.Join(err, remove()) }()
		if prepareErr != nil {
			return false, prepareErr
		}
		passes = append(passes, ordinary)
	}
	for _, p := range passes {
		if err := compile(ctx, p); err != nil {
			return false, err
		}
	}
	tallies, err := runPasses(ctx, passes, os.Stdout)
	if err != nil {
		return false, err
	}
	v := judge(tallies, root)
	v.print(os.Stdout)
	return v.failed == 0, nil
}
