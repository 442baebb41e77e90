// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervise

import (
	"os"
	"testing"
	"time"
)

func TestParseTask(t *testing.T) {
	const tail = "S 10 11 11 0 -1 4194304 100 0 0 0 7 5 30 20 20 0 3 0 4242 1000 1 2 3"
	for _, tc := range []struct {
		name, stat string
		ok         bool
	}{
		{"plain", "99 (sh) " + tail, true},
		{"parentheses and spaces in the name", "99 (a) R 1 (b) ) " + tail, true},
		{"newline in the name", "99 (a\nb) " + tail, true},
		{"no name", "99 sh " + tail, false},
		{"cut off", "99 (sh) S 10 11", false},
		{"not a number", "99 (sh) S x 11 11 0 -1 4194304 100 0 0 0 7 5 30 20 20 0 3 0 4242", false},
		{"empty", "", false},
	} {
		got, ok := parseTask(99, []byte(tc.stat))
		if ok != tc.ok {
			t.Errorf("%s: ok is %v, want %v", tc.name, ok, tc.ok)
			continue
		}
		want := task{pid: 99, ppid: 10, threads: 3, state: 'S', own: 120 * time.Millisecond, waited: 500 * time.Millisecond, start: 4242}
		if ok && got != want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, want)
		}
	}
}

func TestReadTaskOfThisProcess(t *testing.T) {
	got, ok := readTask(os.Getpid())
	if !ok || got.ppid != os.Getppid() || got.threads < 1 || got.start == 0 {
		t.Errorf("%+v %v, want this process with parent %d", got, ok, os.Getppid())
	}
}

func TestBelow(t *testing.T) {
	tr := tree{tasks: map[int]task{}, children: map[int][]int{}}
	for pid, ppid := range map[int]int{2: 1, 3: 1, 4: 2, 5: 4, 9: 8} {
		tr.tasks[pid] = task{pid: pid, ppid: ppid}
		tr.children[ppid] = append(tr.children[ppid], pid)
	}
	got := map[int]bool{}
	for _, one := range tr.below(1) {
		got[one.pid] = true
	}
	if len(got) != 4 || !got[5] || got[9] || got[1] {
		t.Errorf("below 1: %v, want 2 3 4 5", got)
	}
}

func TestSampler(t *testing.T) {
	s := sampler{seen: map[taskID]time.Duration{}}
	// A process that was seen and is gone without anybody having waited for it still counts.
	s.add([]task{{pid: 1, start: 1, own: time.Second, threads: 2}}, 0)
	s.add([]task{{pid: 2, start: 2, own: time.Second, threads: 1}, {pid: 3, state: 'Z', threads: 4}}, 0)
	if s.cpu != 2*time.Second || s.peak != 2 {
		t.Errorf("cpu %v, tasks %d; want 2s, 2", s.cpu, s.peak)
	}
	// The kernel's books count where they know more: here a child that lived between two looks.
	if s.add(nil, 5*time.Second); s.cpu != 5*time.Second {
		t.Errorf("cpu %v, want 5s", s.cpu)
	}
	// A new process with an old pid is another one.
	if s.add([]task{{pid: 2, start: 7, own: 4 * time.Second}}, 0); s.cpu != 6*time.Second {
		t.Errorf("cpu %v, want 6s", s.cpu)
	}
}

func TestParseUID(t *testing.T) {
	for in, want := range map[string]int{
		"Name:\tsh\nUid:\t5\t6\t7\t8\n": 5, "Name:\tUid: 3\n": -1, "Uid:\n": -1, "Uid:\tx\n": -1, "": -1,
	} {
		if got := parseUID([]byte(in)); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}

func TestKillUIDRefusesRoot(t *testing.T) {
	for _, uid := range []int{0, -1} {
		if _, err := killUID(uid); err == nil {
			t.Errorf("killUID(%d) did not refuse", uid)
		}
	}
}
