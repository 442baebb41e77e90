// SPDX-License-Identifier: Apache-2.0

// Command rollback measures package rollback beside git with a shadow directory, restic if it is installed, and cp -a,
// on trees of real source files, and prints medians, minima and ratios.
//
// All keep what they take: our store syncs as it does by default, git does what it does by default, which syncs less,
// cp is followed by a sync of the file system. A step is timed for all in turn, in an order that rotates, before the
// next step begins. Our steps include opening and closing the store; those of programs include the start of a process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("rollback", flag.ContinueOnError)
	files := flags.String("files", "1000,10000", "sizes of the trees, in files")
	rounds := flags.Int("rounds", 5, "how often everything is measured")
	parent := flags.String("dir", os.TempDir(), "where trees and stores are made; needs about 6 times the largest tree")
	source := flags.String("from", "", "where files are copied from; default: GOROOT/src and the module cache")
	if err := flags.Parse(args); err != nil {
		return err
	}
	roots := strings.Split(*source, ",")
	if *source == "" {
		if roots, err = goSources(ctx); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp(*parent, "bench-rollback-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Printf("%s, %s/%s, %d CPUs; %d rounds; seconds: median (minimum); ours/theirs: of the minima\n",
		runtime.Version(), runtime.GOOS,
		runtime.GOARCH, runtime.GOMAXPROCS(0), *rounds)
	for text := range strings.SplitSeq(*files, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 20 {
			return fmt.Errorf("-files: %q is no number of at least 20", text)
		}
		if err := measure(ctx, dir+"/"+text, roots, n, *rounds); err != nil {
			return err
		}
	}
	return nil
}

// measure makes one tree a peer, takes the times and prints the table.
func measure(ctx context.Context, dir string, roots []string, n, rounds int) error {
	peers, missing := available()
	for _, why := range missing {
		fmt.Println("not measured:", why)
	}
	b := &bench{dir: dir, peers: peers, times: map[string]map[string][]float64{}}
	if err := b.prepare(ctx, roots, n); err != nil {
		return err
	}
	for round := range rounds {
		if err := b.round(ctx, round); err != nil {
			return err
		}
	}
	if err := b.heap(ctx); err != nil {
		return err
	}
	b.print(os.Stdout)
	return os.RemoveAll(dir)
}
