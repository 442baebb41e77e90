// SPDX-License-Identifier: Apache-2.0

// Command gate runs the tests of every module of the tree, as root with the race detector and again as an ordinary user
// without it, counts what happened and decides. `make test` calls it; it has no flags. For an ordinary caller the one pass
// that is left has the race detector.
//
// It exits with 0 only if every test passed in every pass in which it was not skipped, every skip came from
// testenv.Need, and no test was skipped in all passes, apart from those that need what "all" demands of nobody. Run by
// an ordinary user it makes the ordinary pass alone and says how many tests that leaves out.
//
// # What it does not do
//
// It formats, vets and installs nothing; the Makefile does. It does not repeat a failed test.
package main

import (
	"context"
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
func run(ctx context.Context) (bool, error) {
	modules, err := listModules(ctx)
	if err != nil {
		return false, err
	}
	root := os.Getuid() == 0
	flags := []string{"-race"}
	var passes []*tally
	if root {
		t, err := runPass(ctx, pass{name: "root", modules: modules, flags: flags})
		if err != nil {
			return false, err
		}
		passes = append(passes, t)
		flags = nil // once is enough, and some tests run only without
	} else {
		fmt.Println("gate: not root, so only the pass as an ordinary user is made")
	}
	t, err := ordinaryPass(ctx, pass{name: "ordinary user", modules: modules, flags: flags}, root)
	if err != nil {
		return false, err
	}
	v := judge(append(passes, t), root)
	v.print(os.Stdout)
	return v.failed == 0, nil
}
