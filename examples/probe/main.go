// SPDX-License-Identifier: Apache-2.0

// Probe says what this host can enforce for this caller: for each executor its capabilities, the mechanism behind each
// limit, the tier that they make up, and for what is missing the way to get it.
//
//	go run ./examples/probe
//	go run ./examples/probe -prove        # attacks each executor instead of believing it; some seconds each
//	go run ./examples/probe -json | jq .
//
// The exit code is 0 if at least one executor reaches tier 1, 1 if none does, 2 for a wrong call.
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
	"runtime"
	"syscall"

	"github.com/evoseal/containment/examples/internal/executors"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// host is all that is printed.
type host struct {
	System    string     `json:"system"`
	UID       int        `json:"uid"` // what can be enforced depends on it
	Executors []findings `json:"executors"`
}

// findings are what one executor can do here.
type findings struct {
	Name         string                 `json:"name"`
	Error        string                 `json:"error,omitempty"` // why there is no such executor here
	Fix          string                 `json:"fix,omitempty"`
	Tier         isolation.Tier         `json:"tier"`
	Proven       bool                   `json:"proven"` // the capabilities are those that held under attack, not the claims
	Capabilities executor.Capability    `json:"capabilities"`
	Missing      []missing              `json:"missing,omitempty"`
	Limits       []executor.Enforcement `json:"limits,omitempty"`
	Failed       []isolation.Probe      `json:"failed,omitempty"` // attacks that did not prove what was claimed
}

// missing is a capability that this executor does not have here, and the way to get it.
type missing struct {
	Capability executor.Capability `json:"capability"`
	Fix        string              `json:"fix"`
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("probe", flag.ContinueOnError)
	flags.SetOutput(stderr)
	asJSON := flags.Bool("json", false, "print JSON")
	prove := flags.Bool("prove", false, "attack each executor, and believe only what held")
	old := flags.Bool("allow-old-runtime", false, "look at containerd although its version has known holes")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	set := executors.All(ctx, executors.Options{AllowOldRuntime: *old})
	defer set.Close()
	h := host{System: runtime.GOOS + "/" + runtime.GOARCH, UID: os.Getuid()}
	best := isolation.TierInvalid
	for _, c := range set.Candidates {
		f := look(ctx, c, *prove)
		h.Executors = append(h.Executors, f)
		best = max(best, f.Tier)
	}
	var err error
	if *asJSON {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(h)
	} else {
		err = printTable(stdout, h)
	}
	if err != nil {
		fmt.Fprintln(stderr, "probe:", err)
		return 1
	}
	if best < isolation.TierGuarded {
		return 1
	}
	return 0
}

// look asks one executor, or attacks it.
func look(ctx context.Context, c isolation.Candidate, prove bool) findings {
	f := findings{Name: c.Name}
	if c.Err != nil {
		f.Error = c.Err.Error()
		if u, ok := errors.AsType[*executor.UnsupportedError](c.Err); ok {
			f.Error, f.Fix = u.Reason, u.Fix
		}
		return f
	}
	f.Capabilities = c.Executor.Capabilities()
	if prove {
		// The error says no more than the report: whatever is not proven does not count.
		report, _ := executors.Prove(ctx, c.Executor)
		f.Proven, f.Capabilities, f.Failed = true, report.Proven, report.Failed()
	}
	f.Tier = isolation.Reached(f.Capabilities)
	for m := range f.Capabilities.Missing(executor.AllCapabilities).All() {
		f.Missing = append(f.Missing, missing{Capability: m, Fix: fixes[m]})
	}
	f.Limits = limits(ctx, c.Executor)
	return f
}

// limits makes one harmless run, since only a result says what stood behind each limit.
func limits(ctx context.Context, ex executor.Executor) []executor.Enforcement {
	dir, err := os.MkdirTemp("", "probe-")
	if err != nil {
		return nil
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // a run of root has another uid
		return nil
	}
	result, err := ex.Run(ctx, executor.Spec{Args: []string{"true"}, Workspace: dir, Label: "probe example"})
	if err != nil {
		return nil
	}
	var found []executor.Enforcement
	for _, e := range result.Enforced {
		var c executor.Capability
		if c.UnmarshalJSON([]byte(`["`+e.Limit+`"]`)) != nil { // the others are capabilities, which are known already
			found = append(found, e)
		}
	}
	return found
}
