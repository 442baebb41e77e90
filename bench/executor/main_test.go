// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/internal/testenv"
)

// TestEverySubjectRuns: whatever this host has can be measured, and what it lacks is named.
func TestEverySubjectRuns(t *testing.T) {
	testenv.Need(t, "bubblewrap")
	// Not t.TempDir, whose parent is closed to the peers' uid.
	dir, err := os.MkdirTemp("", "bench-executor-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	subjects, done, err := prepare(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := done(); err != nil {
			t.Error(err)
		}
	}()
	m, err := measure(t.Context(), subjects, 1, 2, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	m.print(&out)
	for _, name := range []string{plain, byPrlimit, byBwrap, "rlimit", "bubblewrap", "containerd"} {
		if !strings.Contains(out.String(), name) {
			t.Errorf("%q is missing:\n%s", name, out.String())
		}
	}
}

func TestMeasureFailsWithItsSubject(t *testing.T) {
	broken := errors.New("broken")
	bad := subject{name: "bad", run: func(context.Context) error { return broken }}
	if _, err := measure(t.Context(), []subject{bad}, 1, 1, 0); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	calls := 0
	late := subject{name: "late", run: func(context.Context) error {
		if calls++; calls > 4 {
			return broken
		}
		return nil
	}}
	if _, err := measure(t.Context(), []subject{late}, 1, 1, time.Minute); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestPrint(t *testing.T) {
	m := &measurement{
		subjects: []subject{{name: "theirs"}, {name: "ours", peer: "theirs"}, {name: "gone", why: errors.New("no such thing")}},
		took:     map[string][]float64{"theirs": {4, 2, 3}, "ours": {3, 9}},
		rate:     map[string]float64{"theirs": 100, "ours": 50},
	}
	var out bytes.Buffer
	m.print(&out)
	want := `        one run      ours/theirs  runs/s  ours/theirs  beside
theirs  3.00 (2.00)  –            100.0   –            
ours    6.00 (3.00)  1.50         50.0    0.50         theirs
not measured: gone: no such thing
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
