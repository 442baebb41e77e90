// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestChildHoldsStore is no test: it is the process of TestSweep, which kills it.
func TestChildHoldsStore(t *testing.T) {
	dir := os.Getenv("ROLLBACK_TEST_STORE")
	if dir == "" {
		return
	}
	s, err := Open(dir, &Options{Codec: CodecNone})
	if err != nil {
		t.Fatal(err)
	}
	w := s.newWriter()
	if _, err := w.Add(1, make([]byte, 4<<20)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.enter(t.Context(), os.Getenv("ROLLBACK_TEST_LOCK") == "exclusive"); err != nil {
		t.Fatal(err)
	}
	fmt.Println("ready")
	select {}
}

// holdStore starts a process that has the store open, a pack unfinished, and the lock. The caller kills it.
func holdStore(t *testing.T, dir, lock string) (kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChildHoldsStore$")
	cmd.Env = append(os.Environ(), "ROLLBACK_TEST_STORE="+dir, "ROLLBACK_TEST_LOCK="+lock)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	}
}

// TestSweep: what a living process has unfinished stays, what a killed one left goes, and its locks block nobody.
func TestSweep(t *testing.T) {
	t.Parallel()
	for _, lock := range []string{"shared", "exclusive"} {
		dir := filepath.Join(t.TempDir(), "s")
		kill := holdStore(t, dir, lock)
		s := fakeStore(t, dir, nil)
		if files := storeFiles(t, s, tmpDir); len(files) != 1 {
			t.Errorf("%s: of the living process is left %q", lock, files)
		}
		if _, err := s.Prune(t.Context(), Retention{}); !errors.Is(err, ErrLocked) {
			t.Errorf("%s: %v", lock, err)
		}
		kill()
		if _, err := s.Prune(t.Context(), Retention{}); err != nil {
			t.Errorf("%s: a dead process blocks: %v", lock, err)
		}
		again := fakeStore(t, dir, nil)
		entries, err := os.ReadDir(filepath.Join(dir, tmpDir))
		if err != nil || len(entries) != 2 || len(storeFiles(t, again, tmpDir)) != 0 {
			t.Errorf("%s: left in tmp: %v, %v", lock, entries, err)
		}
	}
}
