// SPDX-License-Identifier: Apache-2.0

package runtest

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
)

// Executor is an executor that holds something.
type Executor interface {
	executor.Executor
	io.Closer
}

// daemons leaves behind whatever a run can leave behind: orphans in sessions of their own that ignore signals.
const daemons = `for i in 1 2 3; do setsid sh -c 'trap "" TERM HUP INT; sleep 300; sleep 300' & done; echo x > f; `

// NothingIsLeft makes runs that end in every way, and demands that they leave no process, file, mount, cgroup, descriptor
// or goroutine behind. It closes the executor. Children that stay are somebody else's.
func NothingIsLeft(t *testing.T, ex Executor, state string, runs int, stay ...string) {
	t.Helper()
	older()
	workspace := t.TempDir()
	if err := os.WriteFile(filepath.Join(workspace, "a"), []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	specs := endings()
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
	var turn atomic.Int64
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for i := turn.Add(1) - 1; i < int64(runs); i = turn.Add(1) - 1 {
				one(int(i))
			}
		})
	}
	workers.Wait()
	settle(t, "goroutines", goroutines, runtime.NumGoroutine)
	settle(t, "descriptors", files, func() int { runtime.GC(); return openFiles(t) })
	TracesGone(t, state)
	if err := ex.Close(); err != nil {
		t.Error(err)
	}
	kids := slices.DeleteFunc(Children(t), func(pid string) bool { return slices.Contains(stay, pid) })
	if len(kids) > 0 {
		t.Errorf("children: %q", kids)
	}
}

// endings are runs that end in different ways.
func endings() []executor.Spec {
	short := executor.Limits{Wall: 30 * time.Millisecond, Output: 4096, Memory: 64 << 20, FileSize: 4096}
	return []executor.Spec{
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
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// settle waits a moment for what ends by itself just after a run.
func settle(t *testing.T, what string, want int, count func() int) {
	t.Helper()
	got := count()
	for range 500 {
		if got <= want {
			return
		}
		time.Sleep(10 * time.Millisecond)
		got = count()
	}
	t.Errorf("%d %s, want %d as before", got, what, want)
}

// Children are the pids of this process's children.
func Children(t *testing.T) (kids []string) {
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
