// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/examples/evolve/internal/genetic"
	"github.com/evoseal/containment/internal/testenv"
)

// shared is the temporary directory of all programs that these tests start, so that the compiled standard library is
// made once. It is not t.TempDir, which is closed to the uids that runs of root have.
var shared = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "evolve-test-")
	if err != nil {
		return "", err
	}
	removeShared = func() error {
		// Seeds are read-only.
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				_ = os.Chmod(path, 0o755)
			}
			return nil
		})
		return os.RemoveAll(dir)
	}
	return dir, os.Chmod(dir, 0o755)
})

// scratch is the shared directory with nothing in it but seeds. Tests that call it are not parallel.
func scratch(t *testing.T) string {
	t.Helper()
	for _, c := range []string{"seccomp", "landlock", "go"} {
		testenv.Need(t, c)
	}
	dir, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pattern := range []string{"*", "containment-evolve-*/*"} {
			found, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, path := range found {
				if name := filepath.Base(path); name == "seeds" || strings.HasPrefix(name, "containment-evolve-") {
					continue
				}
				if err := os.RemoveAll(path); err != nil {
					t.Error(err)
				}
			}
		}
	})
	return dir
}

// program starts this test binary as the program. Its runs are below dir.
func start(dir string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), "EVOLVE_TEST_MAIN=1", "TMPDIR="+dir)
	out := &bytes.Buffer{}
	c.Stdout, c.Stderr = out, out
	return c, out
}

func finish(t *testing.T, c *exec.Cmd, out *bytes.Buffer, want int) string {
	t.Helper()
	if err := c.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	if got := c.ProcessState.ExitCode(); got != want {
		t.Fatalf("%q: exit code %d, want %d\n%s", c.Args[1:], got, want, out)
	}
	return out.String()
}

// state is the directory that a run has printed.
func stateOf(t *testing.T, out string) layout {
	t.Helper()
	m := regexp.MustCompile(`(?m)^state +(/.*)$`).FindStringSubmatch(out)
	if m == nil {
		t.Fatal("no state directory in:\n", out)
	}
	return layout{dir: m[1]}
}

// consistent demands that tree, ledger and history tell the same story, and returns the history.
func consistent(t *testing.T, l layout) []entry {
	t.Helper()
	h, err := openHistory(l.history())
	if err != nil {
		t.Fatal(err)
	}
	h.close()
	source, err := os.ReadFile(filepath.Join(l.tree(), filepath.FromSlash(evolved)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := genetic.ParseFunc(source, function); err != nil {
		t.Error(err)
	}
	p := &packing{ledger: l.scores(), best: 100}
	if err := p.open(l.tree()); err != nil {
		t.Fatal(err)
	}
	var last *entry
	for i := range h.all {
		if e := &h.all[i]; e.Accepted {
			if last != nil && e.Score.Value >= last.Score.Value {
				t.Errorf("variant %d was kept with %v after %v", e.Iteration, e.Score.Value, last.Score.Value)
			}
			last = e
		}
		if i > 0 && h.all[i].Iteration <= h.all[i-1].Iteration {
			t.Errorf("variant %d follows %d", h.all[i].Iteration, h.all[i-1].Iteration)
		}
	}
	// The last kept variant may be missing in the history after a kill, and in the tree never.
	if last != nil && p.best > last.Score.Value {
		t.Errorf("the tree is worth %v, and %v was kept", p.best, last.Score.Value)
	}
	return h.all
}

func TestRun(t *testing.T) {
	dir := scratch(t)
	picture := filepath.Join(dir, "picture.svg")
	c, buf := start(dir, "-max", "4", "-screen", "100", "-executor", "rlimit", "-curve", picture)
	out := finish(t, c, buf, exitBetter)
	l := stateOf(t, out)
	all := consistent(t, l)
	kept := regexp.MustCompile(`(?m)^ +\d+  KEPT `).FindAllString(out, -1)
	lines := regexp.MustCompile(`(?m)^ +\d+  (KEPT|rejected) `).FindAllString(out, -1)
	if len(all) != 4 || len(lines) != 4 || len(kept) == 0 {
		t.Errorf("%d entries\n%s", len(all), out)
	}
	template, err := program.ReadFile("program/" + evolved)
	if err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(filepath.Join(l.tree(), filepath.FromSlash(evolved)))
	if err != nil || allowlist.Sum(now) == allowlist.Sum(template) {
		t.Error("the tree is what it was", err)
	}
	for _, want := range []string{"4 variants compiled and tested in rlimit", "held out: ", "func Score(", "checkpoint"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	for _, path := range []string{picture, l.curve()} {
		data, err := os.ReadFile(path)
		if err != nil || xml.Unmarshal(data, new(struct{})) != nil {
			t.Errorf("%s: %v\n%s", path, err, data)
		}
	}
	// It is over, and says how to go on.
	c, buf = start(dir, "-resume")
	if out := finish(t, c, buf, exitStopped); !strings.Contains(out, "-max raises") {
		t.Error(out)
	}
	c, buf = start(dir, "-resume", "-max", "5", "-instances", benchmarkFile(t))
	out = finish(t, c, buf, exitBetter)
	for _, want := range []string{"resumed after 4 variants", `"small.txt": 2 × 3 items`} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if all := consistent(t, l); len(all) != 5 {
		t.Errorf("%d entries", len(all))
	}
	c, buf = start(dir, "-state", l.dir)
	if out := finish(t, c, buf, exitFault); !strings.Contains(out, "holds a run") {
		t.Error(out)
	}
}

// benchmarkFile has decimals, as the harder files of the OR-library do.
func benchmarkFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "small.txt")
	if err := os.WriteFile(path, []byte("2\na\n150.0 3 2\n100.5\n49.5\n60\nb\n150 3 1\n50\n50\n50\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Killed at any instant, a run goes on where it was, and ends as if nothing had happened.
func TestKilled(t *testing.T) {
	dir := scratch(t)
	c, buf := start(dir, "-max", "6", "-screen", "100", "-problem", "weibull")
	end := await(t, c, buf, func() bool { return strings.Count(historyText(dir), "\n") >= 2 })
	if err := c.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	end()
	c, buf = start(dir, "-resume")
	out := finish(t, c, buf, exitBetter)
	all := consistent(t, stateOf(t, out))
	if last := all[len(all)-1]; last.Iteration != 6 || len(all) < 5 {
		t.Errorf("%d entries, the last is %d\n%s", len(all), last.Iteration, out)
	}
	if !strings.Contains(out, "resumed after ") {
		t.Error(out)
	}
}

func historyText(dir string) string {
	found, _ := filepath.Glob(filepath.Join(dir, "containment-evolve-*", "*", "history.jsonl"))
	if len(found) != 1 {
		return ""
	}
	data, _ := os.ReadFile(found[0])
	return string(data)
}

// await starts a program and waits until something is the case. Only a program that ends before, or hangs, makes it
// fail. The function that it returns waits for the end.
func await(t *testing.T, c *exec.Cmd, out *bytes.Buffer, ok func() bool) (end func()) {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait() // how it ended is in ProcessState
	}()
	for range 6000 {
		if ok() {
			return func() { <-ended }
		}
		select {
		case <-ended:
			t.Fatalf("%q ended before: %v\n%s", c.Args[1:], c.ProcessState, out)
		case <-time.After(50 * time.Millisecond):
		}
	}
	_ = c.Process.Kill()
	<-ended
	t.Fatalf("%q does not come so far:\n%s", c.Args[1:], out)
	return nil
}

// A kill file ends the run with a code of its own, and the run goes on when it is gone.
func TestKillFile(t *testing.T) {
	dir := scratch(t)
	file := filepath.Join(dir, "halt")
	c, buf := start(dir, "-max", "1000", "-screen", "0", "-kill-file", file)
	end := await(t, c, buf, func() bool { return historyText(dir) != "" })
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	end()
	if code := c.ProcessState.ExitCode(); code != exitStopped || !strings.Contains(buf.String(), "go on with") {
		t.Fatalf("exit code %d\n%s", code, buf)
	}
	c, buf = start(dir, "-resume")
	finish(t, c, buf, exitStopped) // it is still there
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	c, buf = start(dir, "-resume")
	before := strings.Count(historyText(dir), "\n")
	end = await(t, c, buf, func() bool { return strings.Count(historyText(dir), "\n") > before })
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	end()
	if code := c.ProcessState.ExitCode(); code != exitStopped {
		t.Errorf("SIGTERM: exit code %d\n%s", code, buf)
	}
	consistent(t, stateOf(t, buf.String()))
}

// What cannot be had is refused, and nothing is run.
func TestRefused(t *testing.T) {
	dir := scratch(t)
	c, buf := start(dir, "-executor", "containerd")
	if out := finish(t, c, buf, exitRefused); !strings.Contains(out, "-tags containerd") || historyText(dir) != "" {
		t.Error(out)
	}
	c, buf = start(dir, "-generator", "command", "--", "true")
	if out := finish(t, c, buf, exitRefused); !strings.Contains(out, "Tier 2 is a fresh container") {
		t.Error(out)
	}
	none := filepath.Join(dir, "none")
	for _, args := range [][]string{{"-resume", "-state", none}, {"-instances", none}} {
		c, buf = start(dir, args...)
		finish(t, c, buf, exitFault)
	}
}

const buggyModule = "module max\n\ngo 1.24\n"

const buggy = `package max

// Max returns the larger of two numbers.
func Max(a, b int) int {
	if a < b {
		return a
	}
	return b
}
`

const buggyTest = `package max

import "testing"

func TestMax(t *testing.T) {
	if Max(1, 2) != 2 || Max(2, 1) != 2 {
		t.Error("Max is wrong")
	}
}
`

// buggyProject writes a module whose test fails.
func buggyProject(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"go.mod": buggyModule, "max.go": buggy, "max_test.go": buggyTest} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The repair of a project ends with a patch, and the project is as it was.
func TestTree(t *testing.T) {
	dir := scratch(t)
	project := filepath.Join(dir, "project")
	buggyProject(t, project)
	if err := os.WriteFile(filepath.Join(project, ".env"), []byte("SECRET=1"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, buf := start(dir, "-tree", project, "-surface", "*.go", "-max", "10")
	c.Env = append(c.Env, "HOME="+dir)
	if err := c.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	out := buf.String()
	switch code := c.ProcessState.ExitCode(); code {
	case exitBetter:
		if !strings.Contains(out, "+\tif a > b {") {
			t.Error(out)
		}
	case exitRefused: // a host with credentials or other people in reach
		if !strings.Contains(out, "What was seen on this host") {
			t.Error(out)
		}
	default:
		t.Errorf("exit code %d\n%s", code, out)
	}
	if _, err := os.Lstat(filepath.Join(stateOf(t, out).tree(), ".env")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a secret was copied:", err)
	}
	if now, err := os.ReadFile(filepath.Join(project, "max.go")); err != nil || string(now) != buggy {
		t.Errorf("%v: the project was changed:\n%s", err, now)
	}
}
