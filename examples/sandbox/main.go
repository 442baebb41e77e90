// SPDX-License-Identifier: Apache-2.0

// Sandbox runs one untrusted command on a private copy of a directory and prints what happened and what really enforced
// each limit.
//
//	go run ./examples/sandbox -- sh -c 'id; rm -r *; ls'
//	go run ./examples/sandbox -executor rlimit -- sh -c 'id; rm -r *; ls'
//
// It takes bubblewrap (tier 1.5). Where that cannot work it runs nothing and says why; a weaker tier has to be asked for,
// with -executor rlimit or auto.
//
// Its exit code is 0 if the command ended by itself with 0, 1 if it did not, 2 for a wrong call, 3 if nothing was run.
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
	"time"

	"github.com/evoseal/containment/examples/internal/executors"
	"github.com/evoseal/containment/executor"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("sandbox", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: sandbox [flags] -- COMMAND [ARGS…]\n\nflags:")
		flags.PrintDefaults()
	}
	name := flags.String("executor", "bubblewrap", "what contains the command: rlimit (tier 1), bubblewrap (1.5), containerd (2), or\n"+
		"auto, the strongest that this host has; `name`")
	dir := flags.String("dir", ".", "`directory` of which the command gets a private copy")
	var l executor.Limits
	flags.DurationVar(&l.Wall, "wall", 10*time.Second, "time that the command may take")
	flags.Int64Var(&l.Memory, "memory", 256<<20, "`bytes` of memory")
	flags.IntVar(&l.Processes, "processes", 64, "`number` of tasks at one time")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if flags.NArg() == 0 {
		flags.Usage()
		return 2
	}
	result, err := sandbox(ctx, *name, executor.Spec{Args: flags.Args(), Workspace: *dir, Limits: l, Label: "sandbox example"})
	if err != nil {
		fmt.Fprintln(stderr, "nothing was run:", err)
		return 3
	}
	print(stdout, result)
	if !result.OK() {
		return 1
	}
	return 0
}

// sandbox runs the specification in the first executor of that name that this host has.
func sandbox(ctx context.Context, name string, spec executor.Spec) (*executor.Result, error) {
	set, err := executors.Open(ctx, name, executors.Options{})
	if err != nil {
		return nil, err
	}
	defer set.Close()
	var errs []error
	for _, c := range set.Candidates {
		if c.Err == nil {
			return c.Executor.Run(ctx, spec)
		}
		errs = append(errs, c.Err)
	}
	return nil, errors.Join(errs...)
}

func print(w io.Writer, r *executor.Result) {
	fmt.Fprintf(w, "cause   %v: %s\n", r.Cause, r.Detail)
	for _, stream := range []struct {
		name string
		out  executor.Output
	}{{"stdout", r.Stdout}, {"stderr", r.Stderr}} {
		if stream.out.Total > 0 {
			fmt.Fprintf(w, "%s  %d bytes\n%s\n", stream.name, stream.out.Total, indent(stream.out.String()))
		}
	}
	u := r.Usage
	fmt.Fprintf(w, "wall    %v (set-up %v, teardown %v)\n", round(u.Wall), round(r.Timing.Setup), round(r.Timing.Teardown))
	fmt.Fprintf(w, "cpu     %v user, %v system (%s)\n", round(u.User), round(u.System), u.CPUBy)
	fmt.Fprintf(w, "memory  %d KiB at most (%s)\n", u.PeakMemory>>10, u.PeakMemoryBy)
	fmt.Fprintf(w, "tasks   %d at most (%s)\n", u.PeakProcesses, u.PeakProcessesBy)
	for _, h := range r.Hits {
		fmt.Fprintf(w, "hit     %s: %d (%s)\n", h.Limit, h.Count, h.By)
	}
	fmt.Fprintln(w, "\nenforced")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range r.Enforced {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\n", e.Limit, e.By, e.Scope, amount(e), e.Note)
	}
	table.Flush()
}

// amount is a limit in the unit that people use for it.
func amount(e executor.Enforcement) string {
	switch e.Limit {
	case "Wall", "CPU":
		return time.Duration(e.Value).String()
	case "CPUs":
		return fmt.Sprint(float64(e.Value) / 1000)
	case "Memory", "Disk", "FileSize", "Output", "ArtifactBytes":
		if e.Value > 0 && e.Value%(1<<20) == 0 {
			return fmt.Sprintf("%d MiB", e.Value>>20)
		}
	}
	if e.Value == 0 {
		return ""
	}
	return fmt.Sprint(e.Value)
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// indent marks every line, so that nothing the command prints can look like a line of ours.
func indent(s string) string {
	out := "  | "
	for i, r := range s {
		switch {
		case r == '\n' && i < len(s)-1:
			out += "\n  | "
		case r == '\n':
		case r < ' ' && r != '\t', r == 0x7f:
			out += fmt.Sprintf("\\x%02x", r)
		default:
			out += string(r)
		}
	}
	return out
}
