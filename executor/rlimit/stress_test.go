// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rlimit_test

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/rlimit"
)

var (
	stressRuns  = flag.Int("stress.runs", 200, "runs in TestNothingIsLeft; make stress uses 5000")
	stressKills = flag.Int("stress.kills", 20, "host programs killed in TestHostKilled; make stress uses 200")
)

const hostMarker = "CONTAINMENT_TEST_STATE"

// TestMain turns the re-executed test binary into a host program that keeps runs under way until it is killed.
func TestMain(m *testing.M) {
	if state := os.Getenv(hostMarker); state != "" {
		host(state)
	}
	os.Exit(m.Run())
}

// daemons leaves behind whatever a run can leave behind: orphans in sessions of their own that ignore signals.
const daemons = `for i in 1 2 3; do setsid sh -c 'trap "" TERM HUP INT; sleep 300; sleep 300' & done; echo x > f; `

func host(state string) {
	ctx := context.Background()
	ex, err := rlimit.New(ctx, rlimit.Config{StateDir: state})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	workspace := filepath.Join(state, "workspace")
	scripts := []string{"exit 0", daemons + "exit 1", daemons + "sleep 300", "head -c 100000 /dev/zero"}
	fmt.Println("ready")
	for i := 0; ; i++ {
		script := scripts[i%len(scripts)]
		limits := executor.Limits{Wall: 50 * time.Millisecond}
		go func() {
			_, _ = ex.Run(ctx, executor.Spec{Args: []string{"sh", "-c", script}, Workspace: workspace, Limits: limits})
		}()
		time.Sleep(10 * time.Millisecond)
	}
}

// traces lists everything of runs below state that the host knows: processes that run in or from it, mounts, cgroups,
// scratch directories, leases.
func traces(t *testing.T, state string) (found []string) {
	t.Helper()
	procs, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range procs {
		if dir, err := os.Readlink(link); err == nil && strings.HasPrefix(dir, state) {
			found = append(found, link+" → "+dir)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, state) {
			found = append(found, line)
		}
	}
	for _, pattern := range []string{"scratch/*", "leases/*"} {
		paths, _ := filepath.Glob(filepath.Join(state, pattern))
		for _, path := range paths {
			if filepath.Base(path) != "empty" { // the workspace of every trial run
				found = append(found, path)
			}
		}
	}
	return append(found, runGroups()...)
}

// older are the cgroups of runs that were there before this process: somebody else's to remove.
var older = listGroups()

// runGroups lists the cgroups of runs that stay. Tests of other packages may have runs at the same time; theirs go.
func runGroups() (stay []string) {
	stay = slices.DeleteFunc(listGroups(), func(dir string) bool { return slices.Contains(older, dir) })
	for i := 0; i < 40 && len(stay) > 0; i++ {
		time.Sleep(50 * time.Millisecond)
		now := listGroups()
		stay = slices.DeleteFunc(stay, func(dir string) bool { return !slices.Contains(now, dir) })
	}
	return stay
}

var runGroup = regexp.MustCompile(`/containment-[a-z2-7]{26}$`)

func listGroups() (dirs []string) {
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && runGroup.MatchString(path) {
			dirs = append(dirs, path)
		}
		return nil
	})
	return dirs
}

func tracesGone(t *testing.T, state string) {
	t.Helper()
	if found := traces(t, state); len(found) > 0 {
		t.Errorf("%d traces are left: %q", len(found), found[:min(len(found), 10)])
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// Runs that end in every way leave no process, file, mount, cgroup, descriptor or goroutine behind.
func TestNothingIsLeft(t *testing.T) {
	state := stateDir(t)
	ex := newExecutor(t, rlimit.Config{StateDir: state})
	workspace := t.TempDir()
	if err := os.WriteFile(filepath.Join(workspace, "a"), []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	short := executor.Limits{Wall: 30 * time.Millisecond, Output: 4096, Memory: 64 << 20, FileSize: 4096}
	specs := []executor.Spec{
		{Args: []string{"/bin/true"}},
		{Args: []string{"sh", "-c", daemons + "exit 3"}},
		{Args: []string{"sh", "-c", daemons + "sleep 300"}, Limits: short},
		{Args: []string{"sh", "-c", "while :; do echo yes; done"}, Limits: short},
		{Args: []string{"no-such-program"}},
		{Args: []string{"sh", "-c", "kill -9 $$"}},
		{Args: []string{"dd", "if=/dev/zero", "of=f", "bs=8k", "count=1"}, Limits: short},
		{Args: []string{"sh", "-c", "mkdir -p a1/b/c; chmod 0 a1/b; exit 1"}},
		{Args: []string{"true"}, Dir: "no/such/dir"},
	}
	one := func(i int) {
		spec := specs[i%len(specs)]
		spec.Workspace = workspace
		ctx, cancel := context.WithCancel(t.Context())
		if i%7 == 6 {
			time.AfterFunc(time.Duration(rand.IntN(8))*time.Millisecond, cancel)
		}
		if _, err := ex.Run(ctx, spec); err != nil && spec.Dir == "" && ctx.Err() == nil {
			t.Errorf("run %d: %v", i, err)
		}
		cancel()
	}
	for i := range 2 * len(specs) { // whatever is made once is made now
		one(i)
	}
	runtime.GC()
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	for i := range *stressRuns {
		one(i)
	}
	settle(t, "goroutines", goroutines, runtime.NumGoroutine)
	settle(t, "descriptors", files, func() int { runtime.GC(); return openFiles(t) })
	tracesGone(t, state)
	if err := ex.Close(); err != nil {
		t.Error(err)
	}
	if kids := children(t); len(kids) > 0 {
		t.Errorf("children: %q", kids)
	}
}

// settle waits a moment for what ends by itself just after a run.
func settle(t *testing.T, what string, want int, count func() int) {
	t.Helper()
	got := count()
	for range 50 {
		if got <= want {
			return
		}
		time.Sleep(10 * time.Millisecond)
		got = count()
	}
	t.Errorf("%d %s, want %d as before", got, what, want)
}

func children(t *testing.T) (kids []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if data, err := os.ReadFile(path); err == nil {
			kids = append(kids, strings.Fields(string(data))...)
		}
	}
	return kids
}

// A host program that is killed at a random moment, in the middle of several runs, leaves nothing that the next New does
// not remove, and no process for longer than a second.
func TestHostKilled(t *testing.T) {
	state := stateDir(t)
	if err := os.Mkdir(filepath.Join(state, "workspace"), 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	swept := 0
	for range *stressKills {
		cmd := exec.Command(self)
		cmd.Env = []string{hostMarker + "=" + state, "PATH=" + executor.DefaultPath, "TMPDIR=" + os.TempDir()}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var word string
		if _, err := fmt.Fscanln(out, &word); err != nil || word != "ready" {
			t.Fatalf("host program: %q, %v", word, err)
		}
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		leases, _ := filepath.Glob(filepath.Join(state, "leases", "*"))
		swept += len(leases)
		ex, err := rlimit.New(t.Context(), rlimit.Config{StateDir: state})
		if err != nil {
			t.Fatal(err)
		}
		tracesGone(t, state)
		if err := ex.Close(); err != nil {
			t.Error(err)
		}
	}
	if swept == 0 {
		t.Error("no killed host program left a lease: the test did not hit a run")
	}
	t.Logf("%d leases swept", swept)
}
