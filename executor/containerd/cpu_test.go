// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd"
	"github.com/evoseal/containment/internal/testenv"
)

// unwaited computes in children that nobody waits for and that end before anybody looks: none of it is in a sum that is
// made of processes.
const unwaited = `import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
	if os.fork() == 0:
		while time.process_time() < 0.006:
			pass
		os._exit(0)
	try:
		os.wait()
	except ChildProcessError:
		pass
`

// The run ends by the host's look at the box's group: process 1 sees none of it, and would let it go on for
// many times the limit.
func TestCPUOfNobodysChildren(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "python3")
	const limit = time.Second
	for name, warm := range map[string]containerd.Warm{"cold": {}, "warm": {Size: 1}} {
		ex := daemon(t).open(t, containerd.Config{Root: containerd.Root{Reads: hostReads}, Warm: warm})
		if !ex.Capabilities().Has(executor.CPUBounded) {
			t.Fatal("CPUBounded is not promised")
		}
		r, err := ex.Run(t.Context(), executor.Spec{
			Args: []string{"/usr/bin/python3", "-c", unwaited}, Workspace: t.TempDir(),
			Limits: executor.Limits{CPU: limit, Wall: time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
		if used := r.Usage.User + r.Usage.System; r.Cause != executor.CauseCPUTimeout || used <= limit || used > 5*limit {
			t.Errorf("%s: %v after %v, %+v: %s", name, r.Cause, r.Timing.Run, r.Usage, r.Stderr)
		}
	}
}

// What process 1 does for a run is not the run's: it unpacks the workspace and packs the artifacts.
func TestCPUOfProcess1(t *testing.T) {
	t.Parallel()
	ex := usual(t)
	workspace := t.TempDir()
	content := strings.Repeat("0123456789abcdef", 4<<20)
	if err := os.WriteFile(filepath.Join(workspace, "large"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	const limit = 20 * time.Millisecond
	r, err := ex.Run(t.Context(), executor.Spec{
		Args: []string{"true"}, Workspace: workspace, Artifacts: []string{"large"},
		ArtifactDir: filepath.Join(t.TempDir(), "out"),
		Limits:      executor.Limits{CPU: limit, ArtifactBytes: 1 << 30},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() || len(r.Artifacts) != 1 || r.Usage.User+r.Usage.System > limit {
		t.Errorf("%v: %s, %d artifacts, %+v", r.Cause, r.Detail, len(r.Artifacts), r.Usage)
	}
}

// A box that waited and is dead when its job comes costs the run a box, not its result.
func TestWarmBoxDies(t *testing.T) {
	t.Parallel()
	ex := daemon(t).open(t, containerd.Config{Root: containerd.Root{Reads: hostReads}, Warm: containerd.Warm{Size: 1}})
	spec := executor.Spec{Args: []string{"sh", "-c", "exit 5"}, Workspace: t.TempDir()}
	mustExit(t, ex, spec, 5) // the pool learns what to make
	if err := ex.KillWaiting(t.Context(), 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	mustExit(t, ex, spec, 5)
}
