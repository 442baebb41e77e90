// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor/internal/artifact"
)

// swapVariable makes this test binary the attacker of TestExtractRace: it names the directory to work in.
const swapVariable = "ARTIFACT_TEST_SWAP"

func TestMain(m *testing.M) {
	if dir := os.Getenv(swapVariable); dir != "" {
		swap(dir)
	}
	os.Exit(m.Run())
}

// swap exchanges, without a gap, a file for a link, a directory for a link and a file for a FIFO, until it is killed.
func swap(dir string) {
	for pair := 0; ; pair++ {
		name := []string{"file", "dir", "pipe"}[pair%3]
		a, b := filepath.Join(dir, "out", name), filepath.Join(dir, "other-"+name)
		if unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) != nil {
			os.Exit(3)
		}
	}
}

// The rule is that the tree is dead. Should it not be, nothing from outside comes back all the same.
func TestExtractRace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := func(name string) string { return filepath.Join(f.work, name) }
	f.write(t, "out/file", "inside")
	f.write(t, "out/dir/key", "inside")
	f.write(t, "out/pipe", "inside")
	check(t, os.Symlink(filepath.Join(f.secret, "key"), in("other-file")))
	check(t, os.Symlink(f.secret, in("other-dir")))
	check(t, unix.Mkfifo(in("other-pipe"), 0o644))
	attacker := exec.Command(os.Args[0])
	attacker.Env = []string{swapVariable + "=" + f.work}
	check(t, attacker.Start())
	defer func() { _ = attacker.Wait() }()
	defer attacker.Process.Kill()

	takenFiles, refusedFiles, rounds := 0, 0, 0
	r := f.request(t, "out/file", "out/dir/key", "out/pipe", "out/**")
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && rounds < 3000; rounds++ {
		artifacts, refusals, err := artifact.Extract(t.Context(), r)
		check(t, err)
		for _, a := range artifacts {
			if data, err := os.ReadFile(filepath.Join(f.dest, a.Path)); err != nil || string(data) != "inside" {
				t.Fatalf("round %d: %s came back as %q, %v", rounds, a.Path, data, err)
			}
		}
		takenFiles, refusedFiles = takenFiles+len(artifacts), refusedFiles+len(refusals)
	}
	// The attack took place: both kinds of answers were seen, and the attacker lives.
	if takenFiles == 0 || refusedFiles == 0 || attacker.Process.Signal(unix.Signal(0)) != nil {
		t.Fatalf("inconclusive: %d rounds, %d files taken, %d refused", rounds, takenFiles, refusedFiles)
	}
	t.Logf("%d rounds, %d files taken, %d refused", rounds, takenFiles, refusedFiles)
}
