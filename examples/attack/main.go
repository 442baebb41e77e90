// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Attack is a hostile run: a generator that plays the adversary, through the same isolation.Boundary that guards an honest
// one, over every executor that this host has. It edits its guardrails, plants links, patches the tests, fakes success,
// steals secrets, calls home, forks, floods and leaves daemons, and prints what came of it.
//
//	go run ./examples/attack
//	go run ./examples/attack -executor bubblewrap -v
//	CGO_ENABLED=0 go run -tags containerd ./examples/attack   # as root, with containers too
//
// Each attack is first made on a plain process, where it must succeed: otherwise it proves nothing. All of them are bounded
// and aim at decoys that this program plants: files, a listener, a process. Whether an attack had an effect is looked up on
// the host; nothing that the variant says speaks for it.
//
//	contained    the executor claims the capability, the attack was made, and it had no effect
//	refused      it was denied before anything ran
//	not claimed  the executor does not promise this here, and a run that requires it is refused
//	BROKEN       it had an effect
//	unproven     the variant did not get as far as the attack, or the attack fails on a plain process as well
//
// The exit code is 0 if every cell is one of the first three, 1 if not, 2 for a wrong call, 3 if no executor could be used.
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
	"text/tabwriter"

	"github.com/evoseal/containment/examples/internal/executors"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("attack", flag.ContinueOnError)
	flags.SetOutput(stderr)
	name := flags.String("executor", executors.Auto, "the `name` of one executor; auto: every one that this host has")
	verbose := flags.Bool("v", false, "say for each attack what was seen")
	old := flags.Bool("allow-old-runtime", false, "use containerd although its version has known holes")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	set, err := executors.Open(ctx, *name, executors.Options{AllowOldRuntime: *old})
	if err != nil {
		fmt.Fprintln(stderr, "attack:", err)
		return 2
	}
	defer set.Close()

	columns := []column{attackPlain(ctx)}
	for _, c := range set.Candidates {
		if c.Err != nil {
			fmt.Fprintf(stderr, "attack: without %s: %v\n", c.Name, c.Err)
			continue
		}
		columns = append(columns, attackExecutor(ctx, c))
	}
	if len(columns) == 1 {
		fmt.Fprintln(stderr, "attack: there is no executor")
		return 3
	}
	if !printTable(stdout, columns, *verbose) {
		return 1
	}
	return 0
}

// printTable prints attack by attack, and reports whether everything holds.
func printTable(w io.Writer, columns []column, verbose bool) (holds bool) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "the variant")
	for _, c := range columns {
		fmt.Fprint(table, "\t", c.name)
	}
	fmt.Fprintln(table)
	holds = true
	plain := columns[0]
	for i, a := range attacks() {
		fmt.Fprint(table, a.name)
		for n := range columns {
			cell := &columns[n].cells[i]
			if n > 0 && cell.outcome == contained && plain.cells[i].outcome != succeeds {
				cell.outcome = unproven
			}
			holds = holds && (n == 0 || cell.outcome.holds())
			fmt.Fprint(table, "\t", cell.outcome)
		}
		fmt.Fprintln(table)
	}
	fmt.Fprint(table, "does its work\t–")
	for _, c := range columns[1:] {
		word := "kept"
		if c.honest != nil {
			word, holds = "not kept", false
		}
		fmt.Fprint(table, "\t", word)
	}
	fmt.Fprintln(table)
	table.Flush()
	for _, c := range columns {
		if c.honest != nil {
			fmt.Fprintf(w, "\n%s: %v\n", c.name, c.honest)
		}
		for i, a := range attacks() {
			if d := c.cells[i].detail; d != "" && (verbose || !c.cells[i].outcome.holds() && c.cells[i].outcome != succeeds) {
				fmt.Fprintf(w, "\n%s, %s:\n  %s\n", c.name, a.name, d)
			}
		}
	}
	return holds
}
