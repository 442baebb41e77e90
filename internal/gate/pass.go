// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/evoseal/containment/internal/testenv"
)

// pass is one run over all modules under one identity.
type pass struct {
	name    string
	modules []string // directories
	flags   []string // of go test
	exec    []string // what starts a test binary; empty: go test itself
}

// listModules returns the directory of each module of the workspace.
func listModules(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
}

func runPass(ctx context.Context, p pass) (*tally, error) {
	t := newTally(p.name, os.Stdout)
	for _, dir := range p.modules {
		if err := testModule(ctx, t, dir, p); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// quiet are the directories whose packages test nothing but files of their own. Their tests run at the same time. All
// others run one after another: many look for what a run leaves on the host, and two of them would find each other's.
var quiet = []string{"allowlist", "rollback", "runaway"}

// testModule runs the tests of one module.
func testModule(ctx context.Context, t *tally, dir string, p pass) error {
	alone, together, err := split(ctx, dir, p.flags)
	if err != nil {
		return fmt.Errorf("go list in %s: %w", dir, err)
	}
	for _, group := range []struct {
		packages []string
		parallel string
	}{{alone, "-p=1"}, {together, "-p=2"}} {
		if len(group.packages) == 0 {
			continue
		}
		if err := testPackages(ctx, t, dir, p, append([]string{group.parallel}, group.packages...)); err != nil {
			return err
		}
	}
	return nil
}

// split lists the packages of a module. It compiles them on the way, with all processors; -p would hold that up too.
func split(ctx context.Context, dir string, flags []string) (alone, together []string, err error) {
	list := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"list"}, args, flags, []string{"./..."})...)
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		return cmd.Output()
	}
	if _, err := list("-e", "-export", "-test", "-deps"); err != nil { // what does not compile fails as a test
		return nil, nil, err
	}
	out, err := list("-e", "-f", "{{.ImportPath}} {{.Module.Path}}")
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(string(out)) {
		pkg, module, _ := strings.Cut(strings.TrimSpace(line), " ")
		top, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/"), "/")
		if slices.Contains(quiet, top) {
			together = append(together, pkg)
		} else {
			alone = append(alone, pkg)
		}
	}
	return alone, together, nil
}

func testPackages(ctx context.Context, t *tally, dir string, p pass, packages []string) error {
	args := append([]string{"test", "-json", "-count=1"}, p.flags...)
	if len(p.exec) > 0 {
		args = append(args, "-exec", quote(p.exec))
	}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
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
