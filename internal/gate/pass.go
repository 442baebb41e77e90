// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/evoseal/containment/internal/testenv"
)

// pass is one run over all modules under one identity.
type pass struct {
	name    string
	modules []module
	part    part
	exec    []string // what starts a test binary; empty: go test itself
}

// module is a module of the workspace.
type module struct {
	dir      string
	packages []pkg
}

// listModules returns the modules of the workspace.
func listModules(ctx context.Context) ([]module, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	var modules []module
	for dir := range strings.SplitSeq(strings.TrimSpace(string(out)), "\n") {
		packages, err := listPackages(ctx, dir)
		if err != nil {
			return nil, err
		}
		modules = append(modules, module{dir, packages})
	}
	return modules, nil
}

// compile makes go build what a pass needs, with all processors: go test would build a package when its turn comes, while
// others measure time. What does not compile fails as a test.
func compile(ctx context.Context, p pass) error {
	for _, m := range p.modules {
		for _, j := range p.part(m.packages) {
			if len(j.packages) == 0 {
				continue
			}
			args := []string{"list", "-e", "-export", "-test", "-deps"}
			if slices.Contains(j.flags, "-race") {
				args = append(args, "-race")
			}
			cmd := exec.CommandContext(ctx, "go", append(args, j.packages...)...)
			cmd.Dir, cmd.Stderr = m.dir, os.Stderr
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("go list in %s: %w", m.dir, err)
			}
		}
	}
	return nil
}

// runPasses makes the passes in two lanes at the same time. In one are the packages that must be alone: many look for what
// a run leaves on the host, and two of them would find each other's. In the other are those that keep to files of their
// own; they use the time in which the first lane waits for something. The tallies are those of each pass in each lane.
func runPasses(ctx context.Context, passes []pass, out io.Writer) ([]*tally, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out = &lockedWriter{out: out}
	var tallies []*tally
	var errs [2]error
	var lanes sync.WaitGroup
	for i, alone := range []bool{true, false} {
		var own []*tally
		for _, p := range passes {
			own = append(own, newTally(p.name, out))
		}
		tallies = append(tallies, own...)
		lanes.Go(func() {
			for k, p := range passes {
				if errs[i] = runLane(ctx, p, own[k], alone); errs[i] != nil {
					stop() // the gate stays closed whatever else passes
					return
				}
			}
		})
	}
	lanes.Wait()
	return tallies, errors.Join(errs[:]...)
}

// lockedWriter keeps what the lanes print apart.
type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// Write writes all of b at once.
func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(b)
}

// runLane makes one lane's half of a pass.
func runLane(ctx context.Context, p pass, t *tally, alone bool) error {
	parallel := "-p=2"
	if alone {
		parallel = "-p=1"
	}
	for _, m := range p.modules {
		own := slices.DeleteFunc(slices.Clone(m.packages), func(one pkg) bool { return one.alone != alone })
		for _, j := range p.part(own) {
			if len(j.packages) == 0 {
				continue
			}
			j.flags = append([]string{parallel}, j.flags...)
			if err := testPackages(ctx, t, m.dir, p.exec, j); err != nil {
				return err
			}
		}
	}
	return nil
}

func testPackages(ctx context.Context, t *tally, dir string, start []string, j job) error {
	// The Makefile has vetted all of it already, with more checks than go test makes. Nobody debugs these binaries, and
	// without what debuggers need linking takes half the time; so does copying those that are payloads.
	args := append([]string{"test", "-json", "-count=1", "-vet=off", "-ldflags=-w"}, j.flags...)
	if len(start) > 0 {
		args = append(args, "-exec", quote(start))
	}
	cmd := exec.CommandContext(ctx, "go", append(args, j.packages...)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), testenv.RequireVariable+"=all")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	failedBefore := t.failures()
	readErr := t.read(stdout)
	waitErr := cmd.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// go test exits with 1 when a test failed. Without a failure in the events it is our reading that is incomplete.
	if waitErr != nil && t.failures() == failedBefore {
		t.problems = append(t.problems, fmt.Sprintf("go test in %s: %v", dir, errors.Join(waitErr, readErr)))
		return nil
	}
	return readErr
}

// failures counts what has failed so far.
func (t *tally) failures() int {
	n := len(t.problems)
	for id, r := range t.tests {
		if id.Test != "" && r.action == "fail" {
			n++
		}
	}
	return n
}

// quote joins words the way that -exec splits them again.
func quote(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + w + "'"
	}
	return strings.Join(quoted, " ")
}
