// SPDX-License-Identifier: Apache-2.0

// Command executor measures a run of /bin/true in each executor beside what does the same by command line, and prints
// medians, minima and the ratio of the minima:
//
//	rlimit       setpriv and prlimit: another uid and limits, and nothing else
//	bubblewrap   setpriv and bwrap: the same namespaces, file view and mounts
//	containerd   ctr run: the same root, namespaces and limits, with -tags containerd
//
// and plain fork and exec for all, which is what a program does that contains nothing. One run of each is timed in turn,
// in an order that rotates, so that what else the machine does falls on all alike. Then each is run with -flight at a
// time for -for. None of the peers copies a workspace, captures output, counts what a run used, or tells why it ended.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"time"
)

// A subject is one way to run /bin/true.
type subject struct {
	name string
	peer string // the subject that it is compared with; "" if it is a peer itself
	run  func(ctx context.Context) error
	why  error // why it cannot be measured here
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("executor", flag.ContinueOnError)
	rounds := flags.Int("rounds", 100, "how often each is run by itself")
	flight := flags.Int("flight", 2, "how many are under way at the same time in the second part")
	window := flags.Duration("for", 3*time.Second, "how long the second part takes for each; 0: leave it out")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-executor-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	subjects, done, err := prepare(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	fmt.Printf("/bin/true, %s/%s, %d CPUs; %d rounds; milliseconds: median (minimum); ours/theirs: of the minima\n",
		runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), *rounds)
	m, err := measure(ctx, subjects, *rounds, *flight, *window)
	if err != nil {
		return err
	}
	m.print(os.Stdout)
	return nil
}
