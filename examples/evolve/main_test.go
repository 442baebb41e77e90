// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/runaway"
)

// The test binary is the program as well, so that it can be killed like one.
func TestMain(m *testing.M) {
	if os.Getenv("EVOLVE_TEST_MAIN") == "1" {
		main()
	}
	code := m.Run()
	if err := removeShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// removeShared removes what the tests that start the program have in common.
var removeShared = func() error { return nil }

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		want string // part of the error; "": none
	}{
		{"", ""},
		{"-max 5 -problem weibull -seed 7 -screen 0 -executor rlimit", ""},
		{"-instances a -instances b", ""},
		{"-tree x -surface *.go", ""},
		{"-resume -max 10", ""},
		{"-generator openai -url http://127.0.0.1:1/v1 -model m", ""},
		{"-generator command -- prog arg", ""},
		{"-max 0", "-max must be"},
		{"-max x", "invalid value"},
		{"-screen -1", "-screen must be"},
		{"-wall 0", "-wall must be"},
		{"-tokens 0", "-tokens"},
		{"-nonsense", "not defined"},
		{"stray", "is not a flag"},
		{"-problem triplets", "uniform or weibull"},
		{"-executor docker", "no executor"},
		{"-generator magic", "no generator"},
		{"-generator openai", "needs -url"},
		{"-generator command", "needs a program"},
		{"-generator repair", "needs -tree"},
		{"-url http://x/v1", "belong to -generator openai"},
		{"-tree x", "needs -surface"},
		{"-tree x -surface y -generator genetic", "bin packing only"},
		{"-tree x -surface y -problem uniform", "belong to bin packing"},
		{"-surface y", "belong to -tree"},
		{"-instances", "needs an argument"},
		{"-resume -seed 2", "belongs to the run"},
		{"-resume -problem uniform", "belongs to the run"},
	} {
		o, err := parse(strings.Fields(c.args), io.Discard)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q: %v", c.args, err)
		case c.want != "" && (o != nil || !errors.Is(err, errUsage)), err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
	// Everything that is wrong is said at once.
	_, err := parse(strings.Fields("-max 0 -screen -1 -executor docker"), io.Discard)
	if err == nil || strings.Count(err.Error(), "\n") < 2 {
		t.Error(err)
	}
}

// -h explains every flag, and every flag in it exists.
func TestHelp(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if code := run(context.Background(), []string{"-h"}, &out, io.Discard); code != 0 {
		t.Error("exit code", code)
	}
	if diff := cmp.Diff(help, out.String()); diff != "" {
		t.Error(diff)
	}
	f, _ := flags(&options{})
	f.VisitAll(func(f *flag.Flag) {
		if !strings.Contains(help, "\n  -"+f.Name+" ") {
			t.Errorf("-%s is not explained", f.Name)
		}
	})
	for line := range strings.Lines(help) {
		if name, ok := strings.CutPrefix(line, "  -"); ok {
			name, _, _ = strings.Cut(name, " ")
			if f.Lookup(name) == nil && name != "h" {
				t.Errorf("-%s is explained and does not exist", name)
			}
		}
		if len([]rune(strings.TrimSuffix(line, "\n"))) > 120 {
			t.Errorf("too long: %s", line)
		}
	}
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	for want, errs := range map[int][]error{
		exitBetter:  {nil, flag.ErrHelp},
		exitNothing: {errNothing},
		exitUsage:   {fmt.Errorf("x: %w", errUsage)},
		exitRefused: {&isolation.DenyError{}, &executor.UnsupportedError{Executor: "x"}},
		exitStopped: {&runaway.StopError{Reason: runaway.ReasonKillFile}, context.Canceled},
		exitFault:   {io.ErrUnexpectedEOF, isolation.ErrTreeUnknown},
	} {
		for _, err := range errs {
			if got := exitCode(err); got != want {
				t.Errorf("%v: %d, want %d", err, got, want)
			}
		}
	}
	if code := run(context.Background(), []string{"-max", "0"}, io.Discard, io.Discard); code != exitUsage {
		t.Error("exit code", code)
	}
}
