// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package containerd_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/rlimit"
	"github.com/evoseal/containment/internal/testenv"
)

// reachScript tries everything that the conformance suite does not, by name.
//
//go:embed testdata/reach.py
var reachScript string

const python = "/usr/bin/python3"

// absent may be missing outside as well: not every kernel has them, and not every host lets its root have them.
var absent = []string{
	"alg", "root of process 1", "memory of process 1", "modprobe", "sysrq", "kcore", "memory device", "kernel log device",
	"kvm",
	"fuse", "host name", "irq", "io_uring", "user namespace", "vsock", "oom score",
}

// victim is a program of the host with the canary in its environment, a file that everybody can read, and a socket.
func victim(t *testing.T) (canary, file, dir string) {
	t.Helper()
	dir = shortDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	canary = "canary-" + filepath.Base(dir)
	file = filepath.Join(dir, "public")
	if err := errors.Join(os.WriteFile(file, []byte(canary), 0o644), os.Chmod(file, 0o644)); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	cmd.Env = []string{"API_TOKEN=" + canary}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return canary, file, dir
}

// through are the names that a script printed between its first and its last word.
func through(t *testing.T, out string) []string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) < 2 || lines[0] != "begun" || lines[len(lines)-1] != "done" {
		t.Fatalf("the script did not end: %.500q", out)
	}
	return lines[1 : len(lines)-1]
}

// mustExit runs something and demands a status.
func mustExit(t *testing.T, ex executor.Executor, spec executor.Spec, code int) *executor.Result {
	t.Helper()
	if spec.Workspace == "" {
		spec.Workspace = t.TempDir()
	}
	r, err := ex.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if r.ExitCode != code {
		t.Errorf("%v, %d instead of %d, %s: %s", r.Cause, r.ExitCode, code, r.Detail, r.Stderr.String())
	}
	return r
}

// Every attempt gets through on the host, where the same program makes it first, and none in a box.
func TestReach(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "python3")
	ex := usual(t)
	canary, file, dir := victim(t)
	cmd := exec.CommandContext(t.Context(), python, "-c", reachScript, canary, file, dir)
	cmd.Env, cmd.Dir = []string{}, t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	outside := through(t, string(out))
	t.Logf("outside: %q", outside)
	spec := executor.Spec{Args: []string{python, "-c", reachScript, canary, file, "/"}}
	r := mustExit(t, ex, spec, 0)
	inside := through(t, r.Stdout.String())
	for _, name := range inside {
		t.Errorf("%s: got through", name)
	}
	if strings.Contains(r.Stderr.String(), "Traceback") {
		t.Errorf("the script failed: %s", r.Stderr.String())
	}
	for _, name := range attempts(reachScript) {
		if !slices.Contains(outside, name) && !slices.Contains(absent, name) {
			t.Errorf("%s: does not succeed outside, so it proves nothing", name)
		}
	}
}

// attempts are the names in the table of a script.
func attempts(script string) (names []string) {
	_, table, _ := strings.Cut(script, "\nATTEMPTS = [")
	table, _, _ = strings.Cut(table, "\n]")
	for _, m := range regexp.MustCompile(`(?m)(?:^ +|\), )\("([a-z_ 0-9]+)", `).FindAllStringSubmatch(table, -1) {
		names = append(names, m[1])
	}
	return names
}

// A file that everybody can read is shown to runs of tier 1 if the caller says so, or if the kernel has no Landlock;
// here it is not there, whatever its mode.
func TestVisibleInTierOne(t *testing.T) {
	t.Parallel()
	ex := usual(t)
	canary, file, dir := victim(t)
	tier1, err := rlimit.New(t.Context(), rlimit.Config{StateDir: shortDir(t), Reads: append([]string{dir}, hostReads...)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tier1.Close(); err != nil {
			t.Error(err)
		}
	}()
	read := executor.Spec{Args: []string{"cat", file}}
	if r := mustExit(t, tier1, read, 0); r.Stdout.String() != canary {
		t.Errorf("tier 1 printed %q: the control proves nothing", r.Stdout.String())
	}
	if r := mustExit(t, ex, read, 1); r.Stdout.Total != 0 || !strings.Contains(r.Stderr.String(), "No such file") {
		t.Errorf("stdout %q, stderr %q", r.Stdout.String(), r.Stderr.String())
	}
	// A second box with the canary in arguments, environment, workspace and memory shows it to no other.
	workspace := t.TempDir()
	if err := os.WriteFile(filepath.Join(workspace, "mine"), []byte(canary), 0o644); err != nil {
		t.Fatal(err)
	}
	var live output
	neighbour := executor.Spec{
		Args: []string{"sh", "-c", "cp mine /tmp; cp mine /dev/shm; echo up; sleep 600", canary}, Workspace: workspace,
		Env: map[string]string{"API_TOKEN": canary}, Stdout: &live,
	}
	stop := beside(t, ex, neighbour)
	live.wait(t, "up")
	search := executor.Spec{Args: []string{"sh", "-c", "grep -rsl --devices=skip " + canary +
		" /proc/[0-9]*/environ /box /tmp /dev/shm /etc /var /home /root; cd /proc; echo [0-9]*"}}
	r := mustExit(t, ex, search, 0)
	if out := r.Stdout.String(); strings.Contains(out, "/") || !strings.HasPrefix(out, "1 ") ||
		len(strings.Fields(out)) > 4 {
		t.Errorf("a box sees another one: %q", out)
	}
	stop()
}

// beside keeps a run under way until the function that it returns is called.
func beside(t *testing.T, ex executor.Executor, spec executor.Spec) (stop func()) {
	t.Helper()
	if spec.Workspace == "" {
		spec.Workspace = t.TempDir()
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		r, err := ex.Run(ctx, spec)
		if err == nil && r.Cause != executor.CauseCancelled {
			err = fmt.Errorf("it ended by %v: %s", r.Cause, r.Stderr.String())
		}
		done <- err
	}()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the run beside: %v", err)
		}
	}
}
