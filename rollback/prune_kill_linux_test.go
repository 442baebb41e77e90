// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChildPrunes is no test: it is the process of TestKilledPrune, which kills itself.
func TestChildPrunes(t *testing.T) {
	dir, at := os.Getenv("ROLLBACK_TEST_PRUNE"), os.Getenv("ROLLBACK_TEST_STEP")
	if dir == "" {
		return
	}
	s, err := Open(dir, &Options{Codec: CodecNone})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	s.hook = func(name string) {
		if n++; fmt.Sprint(n) == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		fmt.Println("step", name)
	}
	if _, err := s.Prune(t.Context(), Retention{User: 2}); err != nil {
		t.Fatal(err)
	}
	fmt.Println("finished")
}

// TestKilledPrune: whichever step it dies at, the kept checkpoints verify, and the next prune finishes the work.
func TestKilledPrune(t *testing.T) {
	t.Parallel()
	finished, steps := false, map[string]bool{}
	for step := 1; !finished; step++ {
		if step > 50 {
			t.Fatal("the prune never ends")
		}
		dir := filepath.Join(t.TempDir(), "s")
		s := fakeStore(t, dir, &Options{Sync: SyncProcess, Codec: CodecNone})
		fakeCheckpoint(t, s, fakeDir{"dead": strings.Repeat("x", 1000)})
		fakeCheckpoint(t, s, fakeDir{"big": strings.Repeat("b", 100_000), "keep": "k"})
		fakeCheckpoint(t, s, fakeDir{"keep": "k", "more": "m"})
		fakeCheckpoint(t, s, fakeDir{"keep": "k"})
		keep := ids(t, s)[:2]
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChildPrunes$")
		cmd.Env = append(os.Environ(), "ROLLBACK_TEST_PRUNE="+dir, "ROLLBACK_TEST_STEP="+fmt.Sprint(step))
		out, err := cmd.Output()
		finished = strings.Contains(string(out), "finished")
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !finished && !(ok && status.Signal() == syscall.SIGKILL) {
			t.Fatalf("%v: %s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if name, ok := strings.CutPrefix(line, "step "); ok {
				steps[strings.TrimSpace(name)] = true
			}
		}
		again := fakeStore(t, dir, &Options{Sync: SyncProcess})
		left := ids(t, again)
		for _, id := range keep {
			if !slices.Contains(left, id) {
				t.Errorf("step %d: %s is gone", step, id)
			}
		}
		if err := again.Verify(t.Context(), ID{}); err != nil {
			t.Errorf("step %d: %v", step, err)
		}
		prune(t, again, Retention{User: 2})
		if diff := cmp.Diff(keep, ids(t, again)); diff != "" {
			t.Errorf("step %d: %s", step, diff)
		}
	}
	want := []string{"delete/manifest", "prune/dead-packs-gone", "prune/decided", "prune/manifests-gone", "prune/repacked"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(steps))); diff != "" {
		t.Error(diff)
	}
}
