// SPDX-License-Identifier: Apache-2.0

package cgroup_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/internal/cgroup"
	"github.com/evoseal/containment/internal/testenv"
)

func host(t testing.TB) *cgroup.Host {
	t.Helper()
	testenv.Need(t, "cgroup")
	h := cgroup.Detect()
	t.Cleanup(func() { h.Close() })
	for _, c := range []cgroup.Controller{cgroup.Memory, cgroup.Processes, cgroup.Kill} {
		if !h.Has(c) {
			t.Fatalf("%v: %s", c, h.Reason(c))
		}
	}
	return h
}

// create makes a group and sees to it that nothing is left of it.
func create(t *testing.T, h *cgroup.Host, l cgroup.Limits) *cgroup.Group {
	t.Helper()
	name := fmt.Sprintf("test-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))
	g, err := h.Create(name, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := errors.Join(g.Kill(ctx), g.Remove(ctx)); err != nil {
			t.Error(err)
		}
		absent(t, h.Dirs(name))
	})
	return g
}

func absent(t *testing.T, dirs []string) {
	t.Helper()
	for _, d := range dirs {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there (%v)", d, err)
		}
	}
}

func stats(t *testing.T, g *cgroup.Group) cgroup.Stats {
	t.Helper()
	s, err := g.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOutOfMemory: the kill is counted, also when only a child dies of it and the leader ends well.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	h := host(t)
	for task, dies := range map[string]bool{"hog": true, "child-hog": false} {
		t.Run(task, func(t *testing.T) {
			t.Parallel()
			g := create(t, h, cgroup.Limits{Memory: 48 << 20})
			if got := g.Set().Memory; got != 48<<20 {
				t.Errorf("the limit is %d", got)
			}
			if err := start(t, g, task).Run(); (err != nil) != dies {
				t.Errorf("the leader ended with %v, want an error: %v", err, dies)
			}
			s := stats(t, g)
			if s.OOMKills < 1 {
				t.Errorf("%d OOM kills were counted", s.OOMKills)
			}
			if s.PeakMemory != -1 && (s.PeakMemory < 32<<20 || s.PeakMemory > 49<<20) { // the kernel lets single pages pass
				t.Errorf("peak of %d bytes", s.PeakMemory)
			}
		})
	}
}

// TestProcessLimit: the refusal is counted, and the peak is at the limit.
func TestProcessLimit(t *testing.T) {
	t.Parallel()
	g := create(t, host(t), cgroup.Limits{Processes: 20})
	cmd := startReady(t, g, "bomb")
	for deadline := time.Now().Add(5 * time.Second); stats(t, g).ProcessLimitHits == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	s := stats(t, g)
	if s.ProcessLimitHits < 1 || s.PeakProcesses > 20 || s.PeakProcesses != -1 && s.PeakProcesses < 20 {
		t.Errorf("%d refusals, peak %d", s.ProcessLimitHits, s.PeakProcesses)
	}
	if cmd.ProcessState != nil {
		t.Error("the bomb ended by itself")
	}
}

// TestProcessorTime: what the run used is counted, in all and by mode, and the quota holds it back.
func TestProcessorTime(t *testing.T) {
	t.Parallel()
	h := host(t)
	if !h.Has(cgroup.CPUTime) || !h.Has(cgroup.CPUs) {
		t.Fatal(h)
	}
	g := create(t, h, cgroup.Limits{CPUs: 0.25})
	if g.Set().CPUs != 0.25 {
		t.Errorf("the quota is %v", g.Set().CPUs)
	}
	begin := time.Now()
	if err := start(t, g, "burn").Run(); err != nil {
		t.Fatal(err)
	}
	wall := time.Since(begin)
	used, ok := g.CPUTime()
	s := stats(t, g)
	if !ok || used <= 20*time.Millisecond || used > wall/4+150*time.Millisecond {
		t.Errorf("used %v (%v) in %v under a quarter of a processor", used, ok, wall)
	}
	if s.CPU < used || s.User+s.System > s.CPU+10*time.Millisecond || s.User+s.System < s.CPU-10*time.Millisecond {
		t.Errorf("total %v, user %v, system %v, polled before: %v", s.CPU, s.User, s.System, used)
	}
}

// TestKill: a tree of daemons and a fork bomb are dead when Kill returns, with the kernel's kill file and without.
func TestKill(t *testing.T) {
	t.Parallel()
	h := host(t)
	kills := map[string]func(context.Context, *cgroup.Group) error{
		"file": func(ctx context.Context, g *cgroup.Group) error { return g.Kill(ctx) }, "one by one": cgroup.KillOneByOne,
	}
	for way, kill := range kills {
		for _, task := range []string{"tree", "bomb"} {
			t.Run(task+" "+way, func(t *testing.T) {
				t.Parallel()
				g := create(t, h, cgroup.Limits{Processes: 60})
				startReady(t, g, task)
				if s := stats(t, g); s.Processes < 2 {
					t.Errorf("%d processes before", s.Processes)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if err := kill(ctx, g); err != nil {
					t.Fatal(err)
				}
				for _, d := range g.Dirs() {
					if procs, err := os.ReadFile(d + "/cgroup.procs"); err != nil || len(procs) > 0 {
						t.Errorf("%s still lists %q (%v)", d, procs, err)
					}
				}
			})
		}
	}
}

// TestRemovePopulated: a group with a process in it stays, Remove gives up in time, and works after a kill.
func TestRemovePopulated(t *testing.T) {
	t.Parallel()
	g := create(t, host(t), cgroup.Limits{Processes: 60})
	startReady(t, g, "sleep")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := g.Remove(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("removal of a populated group: %v", err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("Remove took %v", took)
	}
	if err := errors.Join(g.Kill(t.Context()), g.Remove(t.Context()), g.Remove(t.Context())); err != nil {
		t.Error(err)
	}
	if _, err := g.Stats(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("counters of a removed group: %v", err)
	}
	if _, ok := g.CPUTime(); ok {
		t.Error("processor time of a removed group")
	}
}

// TestDirs: what Dirs says before is what exists after; a name that is taken stays its owner's.
func TestDirs(t *testing.T) {
	t.Parallel()
	h := host(t)
	name := fmt.Sprintf("test-%d-dirs", os.Getpid())
	want := h.Dirs(name)
	absent(t, want)
	g, err := h.Create(name, cgroup.Limits{Memory: 64 << 20, Processes: 8, CPUs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, g.Dirs()); diff != "" {
		t.Error(diff)
	}
	if len(g.JoinFiles()) != len(want) {
		t.Errorf("%d files for %d directories", len(g.JoinFiles()), len(want))
	}
	if second, err := h.Create(name, cgroup.Limits{}); !errors.Is(err, fs.ErrExist) || second != nil {
		t.Errorf("a second group of the same name: %v", err)
	}
	for _, d := range want {
		if _, err := os.Stat(d); err != nil {
			t.Error(err)
		}
	}
	if err := g.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	absent(t, want)
}

// TestRefusals: names and limits that mean nothing make nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	h := host(t)
	for _, name := range []string{"", "../x", "a/b", strings.Repeat("x", 101)} {
		if g, err := h.Create(name, cgroup.Limits{}); !errors.Is(err, cgroup.ErrName) || g != nil {
			t.Errorf("name %q: %v", name, err)
		}
		if dirs := h.Dirs(name); dirs != nil {
			t.Errorf("name %q: directories %q", name, dirs)
		}
	}
	for _, l := range []cgroup.Limits{{Memory: -1}, {Processes: -1}, {CPUs: -1}, {CPUs: 0.001}} {
		if g, err := h.Create("test-refused", l); err == nil || g != nil {
			t.Errorf("limits %+v were taken", l)
		}
	}
	absent(t, h.Dirs("test-refused"))
}

// TestManyGroups: 300 groups, some at the same time, leave no directory and no descriptor.
func TestManyGroups(t *testing.T) {
	h := host(t)
	before := descriptors(t)
	var wg sync.WaitGroup
	for worker := range 3 {
		wg.Go(func() {
			for i := range 100 {
				name := fmt.Sprintf("test-%d-many-%d-%d", os.Getpid(), worker, i)
				g, err := h.Create(name, cgroup.Limits{Memory: 64 << 20, Processes: 8, CPUs: 1})
				if err != nil {
					t.Error(err)
					return
				}
				_, err = g.Stats()
				if err := errors.Join(err, g.Kill(t.Context()), g.Remove(t.Context())); err != nil {
					t.Error(err)
				}
				absent(t, h.Dirs(name))
			}
		})
	}
	wg.Wait()
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func BenchmarkCreateStatsRemove(b *testing.B) {
	h := host(b)
	i := 0
	for b.Loop() {
		i++
		g, err := h.Create(fmt.Sprintf("bench-%d-%d", os.Getpid(), i), cgroup.Limits{Memory: 64 << 20, Processes: 8, CPUs: 1})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := g.Stats(); err != nil {
			b.Fatal(err)
		}
		if err := g.Remove(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCPUTime(b *testing.B) {
	h := host(b)
	g, err := h.Create(fmt.Sprintf("bench-%d", os.Getpid()), cgroup.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, ok := g.CPUTime(); !ok {
			b.Fatal("no processor time")
		}
	}
	if err := g.Remove(context.Background()); err != nil {
		b.Fatal(err)
	}
}
