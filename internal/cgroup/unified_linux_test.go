// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestUnifiedPlace: groups are made in the caller's own group or in an ancestor that was delegated, wherever most
// controllers are handed down, and nowhere else.
func TestUnifiedPlace(t *testing.T) {
	t.Parallel()
	const all = "cpu memory pids"
	for _, c := range []struct {
		name, own string
		build     func(f *fake)
		foreign   bool // the ancestors are the machine's, not a container's
		place     string
		has       []Controller
	}{
		{name: "own group hands down", own: "/svc", place: "svc", has: []Controller{Memory, Processes, CPUs, CPUTime, Kill},
			build: func(f *fake) { f.group("", all, ""); f.group("svc", all, all) }},
		{name: "own group can be made to hand down", own: "/svc", place: "svc",
			has:   []Controller{Memory, Processes, CPUs, CPUTime, Kill},
			build: func(f *fake) { f.group("", all, all); f.group("svc", all, "") }},
		{name: "own group holds processes, parent is the container's", own: "/main", place: "",
			has:   []Controller{Memory, Processes, CPUs, CPUTime, Kill},
			build: func(f *fake) { f.group("", all, all); f.group("main", all, ""); f.busy[f.root+"/main"] = true }},
		{name: "parent not delegated", own: "/svc", foreign: true, place: "svc", has: []Controller{CPUTime, Kill},
			build: func(f *fake) { f.group("", all, all); f.group("svc", all, ""); f.busy[f.root+"/svc"] = true }},
		{name: "some controllers only", own: "/svc", foreign: true, place: "svc", has: []Controller{Processes, CPUTime, Kill},
			build: func(f *fake) { f.group("", all, all); f.group("svc", "pids", "pids") }},
		{name: "nearest of equals", own: "/a/b", place: "a/b",
			has:   []Controller{Memory, Processes, CPUs, CPUTime, Kill},
			build: func(f *fake) { f.group("", all, all); f.group("a", all, all); f.group("a/b", all, all) }},
		{name: "old kernel without kill file", own: "/svc", place: "svc", has: []Controller{Memory, Processes, CPUs, CPUTime, Kill},
			build: func(f *fake) { f.group("", all, all); f.group("svc", all, all); f.lack["cgroup.kill"] = true }},
		{name: "no evidence, no controller", own: "/svc", place: "svc", has: []Controller{Processes, CPUs, CPUTime, Kill},
			build: func(f *fake) { f.group("", all, all); f.group("svc", all, all); f.lack["memory.events"] = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, c.own)
			c.build(f)
			d := f.detector()
			d.uid, d.namespace = 0, !c.foreign
			h := d.detect()
			defer h.Close()
			var has []Controller
			for ctl := range endOfControllers {
				if h.Has(ctl) {
					has = append(has, ctl)
					if h.Version(ctl) != 2 || h.Reason(ctl) != "" {
						t.Errorf("%v: version %d, reason %q", ctl, h.Version(ctl), h.Reason(ctl))
					}
				} else if h.Version(ctl) != 0 || h.Reason(ctl) == "" {
					t.Errorf("%v is missing: version %d, reason %q", ctl, h.Version(ctl), h.Reason(ctl))
				}
			}
			if diff := cmp.Diff(c.has, has); diff != "" {
				t.Errorf("controllers: %s\n%v", diff, h)
			}
			if want := []string{filepath.Join(f.root, c.place, "containment-x")}; cmp.Diff(want, h.Dirs("x")) != "" {
				t.Errorf("directories %q, want %q", h.Dirs("x"), want)
			}
			left, err := filepath.Glob(filepath.Join(f.root, "*", "containment-*"))
			if err != nil || len(left) > 0 {
				t.Errorf("detection left %q (%v)", left, err)
			}
		})
	}
}

// TestDelegationReason: the reason names the group, the controller and the way out.
func TestDelegationReason(t *testing.T) {
	t.Parallel()
	f := newFake(t, "/svc")
	f.group("", "memory pids", "memory pids")
	f.group("svc", "memory", "")
	f.busy[f.root+"/svc"] = true
	d := f.detector()
	d.uid = 0
	h := d.detect()
	defer h.Close()
	for c, words := range map[Controller][]string{
		Memory:    {"no delegation", f.root + "/svc", "memory", "busy", "DelegateSubgroup"},
		Processes: {f.root + "/svc", "does not have", "pids", "DelegateSubgroup"},
	} {
		for _, w := range words {
			if !strings.Contains(h.Reason(c), w) {
				t.Errorf("reason for %v is %q, without %q", c, h.Reason(c), w)
			}
		}
	}
}

// TestUnifiedGroup: limits, counters and removal on version 2.
func TestUnifiedGroup(t *testing.T) {
	t.Parallel()
	f := newFake(t, "/svc")
	f.group("", "cpu memory pids", "cpu memory pids")
	f.group("svc", "cpu memory pids", "cpu memory pids")
	h := f.detector().detect()
	defer h.Close()
	g, err := h.Create("x", Limits{Memory: 64 << 20, Processes: 7, CPUs: 1.5})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Set{Memory: 64 << 20, Processes: 7, CPUs: 1.5}, g.Set()); diff != "" {
		t.Error(diff)
	}
	for file, want := range map[string]string{
		"memory.max": "67108864\n", "memory.swap.max": "0\n", "pids.max": "7\n", "cpu.max": "150000 100000\n",
	} {
		if got, err := os.ReadFile(filepath.Join(g.Dirs()[0], file)); err != nil || string(got) != want {
			t.Errorf("%s is %q (%v), want %q", file, got, err, want)
		}
	}
	want := Stats{OOMKills: 3, ProcessLimitHits: 5, CPU: 70 * time.Microsecond, User: 40 * time.Microsecond,
		System: 30 * time.Microsecond, PeakMemory: 4096, PeakProcesses: 9, Processes: 0}
	if got, err := g.Stats(); err != nil || got != want {
		t.Errorf("stats %+v (%v), want %+v", got, err, want)
	}
	if used, ok := g.CPUTime(); !ok || used != 70*time.Microsecond {
		t.Errorf("processor time %v, %v", used, ok)
	}
	if err := g.Kill(t.Context()); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(g.Dirs()[0], "cgroup.kill")); err != nil || string(got) != "1\n" {
		t.Errorf("cgroup.kill is %q (%v)", got, err)
	}
	if err := g.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(h.Dirs("x")[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there (%v)", err)
	}
}

// TestUnifiedOddKernels: peaks that are not measured are not 0, swap that is not counted is said, and a limit that the
// kernel did not take is no limit.
func TestUnifiedOddKernels(t *testing.T) {
	t.Parallel()
	build := func(t *testing.T, lack ...string) (*fake, *Host) {
		f := newFake(t, "/svc")
		f.group("", "cpu memory pids", "cpu memory pids")
		f.group("svc", "cpu memory pids", "cpu memory pids")
		for _, file := range lack {
			f.lack[file] = true
		}
		f.file(filepath.Join(filepath.Dir(f.proc), "swaps"), "Filename Type Size Used Priority\n/dev/sdb partition 1 0 -2\n")
		h := f.detector().detect()
		t.Cleanup(func() { h.Close() })
		return f, h
	}
	t.Run("nothing optional", func(t *testing.T) {
		t.Parallel()
		_, h := build(t, "memory.peak", "pids.peak", "memory.swap.max")
		g, err := h.Create("x", Limits{Memory: 64 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if g.Set().MemoryNote == "" {
			t.Error("no note says that swap is not counted")
		}
		if s, err := g.Stats(); err != nil || s.PeakMemory != -1 || s.PeakProcesses != -1 || s.OOMKills != 3 {
			t.Errorf("stats %+v (%v)", s, err)
		}
	})
	t.Run("limit not taken", func(t *testing.T) {
		t.Parallel()
		f, h := build(t)
		f.take = func(file, value string) string {
			if file == "pids.max" {
				return "max"
			}
			return value
		}
		if g, err := h.Create("x", Limits{Processes: 7}); err == nil || g != nil {
			t.Error("a group without its limit was made")
		}
		if _, err := os.Stat(h.Dirs("x")[0]); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the directory is still there (%v)", err)
		}
	})
}
