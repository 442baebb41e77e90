// SPDX-License-Identifier: Apache-2.0

package allowlist_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoseal/containment/allowlist"
	"golang.org/x/sys/unix"
)

// crashAt tells a child of TestCrash at which step of Apply it has to kill itself.
const crashAt = "ALLOWLIST_TEST_CRASH_AT"

// The child runs before any test: it is a program of its own in this binary.
func init() {
	if step, ok := os.LookupEnv(crashAt); ok {
		if step == "executable" {
			os.Exit(executableChild())
		}
		crashChild(step)
		os.Exit(3)
	}
}

func crashChild(at string) {
	step, walk, _ := strings.Cut(at, " ")
	o := &allowlist.TreeOptions{}
	if walk == "portable" {
		allowlist.ForcePortable(o)
	}
	allowlist.SetHook(o, func(s string) error {
		if s == step {
			return unix.Kill(unix.Getpid(), unix.SIGKILL)
		}
		return nil
	})
	p, err := allowlist.Load(strings.NewReader(treePolicyText))
	if err != nil {
		return
	}
	tree, err := allowlist.OpenTree(".", o)
	if err != nil {
		return
	}
	plan, err := p.Plan(tree, []allowlist.Edit{modify("src/a", "a\n", "A\n"), create("src/x/new", "n\n"), remove("src/c", "c\n")})
	if err == nil {
		_, _ = plan.Apply(context.Background())
	}
}

// TestCrash kills a process in the middle of Apply. Between staging and swapping nothing planned is visible; in any
// case the lock is free again and no staged file stays.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, walk := range []string{"native", "portable"} {
		for step, visible := range map[string]bool{"filled": false, "swap": false, "swapped": true, "verify": true} {
			t.Run(step+" "+walk, func(t *testing.T) {
				t.Parallel()
				dir := newFiles(t, map[string]string{"src/a": "a\n", "src/c": "c\n", "configs/s": "s\n"})
				before := readTree(t, dir)
				cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
				cmd.Dir, cmd.Env = dir, append(os.Environ(), crashAt+"="+step+" "+walk)
				exit, ok := errors.AsType[*exec.ExitError](cmd.Run())
				if !ok || exit.Sys().(interface{ Signal() unix.Signal }).Signal() != unix.SIGKILL {
					t.Fatalf("the child was not killed at %q: %v", step, exit)
				}
				if !hasTemps(t, dir) {
					t.Error("nothing was left over: the test proves nothing")
				}
				openTree(t, dir, nil)
				wantNoTemps(t, dir)
				if !visible {
					delete(before, "src/x")
					after := readTree(t, dir)
					delete(after, "src/x") // an empty directory may stay
					if before["src/a"] != after["src/a"] || before["src/c"] != after["src/c"] || len(before) != len(after) {
						t.Errorf("before %v, after %v", before, after)
					}
				}
			})
		}
	}
}

func hasTemps(t *testing.T, dir string) bool {
	t.Helper()
	for name := range readTree(t, dir) {
		if strings.HasPrefix(filepath.Base(name), ".al-") {
			return true
		}
	}
	return false
}

// executableChild plans an edit of the program that runs, in the tree that is its working directory.
func executableChild() (code int) {
	p, err := allowlist.Load(strings.NewReader(treePolicyText))
	if err != nil {
		return 1
	}
	tree, err := allowlist.OpenTree(".", nil)
	if err != nil {
		return 1
	}
	defer tree.Close()
	_, err = p.Plan(tree, []allowlist.Edit{{Op: allowlist.Delete, Path: "src/bin/program"}})
	if !errors.Is(err, allowlist.ErrProtected) {
		return 1
	}
	return executableIsSafe
}

const executableIsSafe = 42

// TestExecutableIsProtected runs a copy of this program from inside a tree.
func TestExecutableIsProtected(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	dir := t.TempDir()
	putFile(t, dir, "src/bin/program", string(program), 0o755)
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "src/bin/program"))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), crashAt+"=executable")
	exit, ok := errors.AsType[*exec.ExitError](cmd.Run())
	if !ok || exit.ExitCode() != executableIsSafe {
		t.Errorf("the running program may be edited: %v", exit)
	}
}
