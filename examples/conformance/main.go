// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Conformance shows what the suite of package executortest says of somebody else's executor: here of one that is made of
// os/exec with care (see naive.go), and believes that this is a sandbox.
//
//	go run ./examples/conformance
//	go run ./examples/conformance -claims TreeKilled,OutputBounded,WorkspaceIsolated -every   # some minutes
//
// For each capability that it claims, the attacks on that capability are run against it; what it does not claim, it must
// refuse. The exit code is 0 if it keeps all that it claims, 1 if not, 2 for a wrong call. An executor's own test has the
// same in one call: executortest.Run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/executortest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.SetOutput(stderr)
	claims := executor.CleanEnv | executor.ProtectedReadOnly
	flags.Func("claims", "`capabilities` that the executor claims, with commas between them (default "+
		"CleanEnv,ProtectedReadOnly)", func(text string) error {
		names, err := json.Marshal(strings.Split(text, ","))
		return errors.Join(err, claims.UnmarshalJSON(names))
	})
	every := flags.Bool("every", false, "also run the cases that hold for every executor, whatever it claims")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	ex := naive{claims: claims}
	kept := true
	fmt.Fprintln(stdout, "claimed")
	if *every {
		kept = attack(ctx, stdout, ex, 0)
	}
	for c := range ex.claims.All() {
		kept = attack(ctx, stdout, ex, c) && kept
	}
	fmt.Fprintln(stdout, "not claimed")
	for c := range ex.claims.Missing(executor.AllCapabilities).All() {
		kept = refuses(ctx, stdout, ex, c) && kept
	}
	if !kept {
		fmt.Fprintln(stdout, "it does not keep what it claims; package isolation would refuse it")
		return 1
	}
	return 0
}

// attack runs every case that needs this capability and no other that is not claimed; 0 means those that need none.
func attack(ctx context.Context, w io.Writer, ex executor.Executor, about executor.Capability) bool {
	var held, failed int
	var lines string
	for _, c := range executortest.Cases() {
		if !c.Needs.Has(about) || (about == 0) != (c.Needs == 0) || !ex.Capabilities().Has(c.Needs) {
			continue
		}
		err := c.Check(ctx, ex)
		switch {
		case err == nil:
			held++
			continue
		case errors.Is(err, executortest.ErrBreach):
			lines += fmt.Sprintf("    broken   %s: %s\n", c.Name, c.Why)
		default:
			lines += fmt.Sprintf("    unproven %s: %s\n", c.Name, c.Why)
		}
		failed++
	}
	name := about.String()
	if about == 0 {
		name = "every executor"
	}
	fmt.Fprintf(w, "  %-18s %d of %d attacks contained\n%s", name, held, held+failed, lines)
	return failed == 0
}

// refuses demands that a run which requires the capability does not start.
func refuses(ctx context.Context, w io.Writer, ex executor.Executor, c executor.Capability) bool {
	result, err := ex.Run(ctx, executor.Spec{Args: []string{"true"}, Workspace: ".", Require: c})
	ok := result == nil && errors.Is(err, executor.ErrUnsupported)
	word := "a run that requires it is refused"
	if !ok {
		word = "a run that requires it was started all the same"
	}
	fmt.Fprintf(w, "  %-18v %s\n", c, word)
	return ok
}
