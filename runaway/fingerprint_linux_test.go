// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/evoseal/containment/runaway"
	"golang.org/x/sys/unix"
)

// TestFingerprintOfPipe: a pipe in the tree is refused at once. Opened by mistake, it would keep the host waiting.
func TestFingerprintOfPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := runaway.FingerprintTree(t.Context(), dir); !errors.Is(err, runaway.ErrNoFingerprint) {
		t.Errorf("a pipe: %v", err)
	}
}

// TestFingerprintRace exchanges a file for a link to a secret and a pipe while the tree is read. Whatever comes out, it
// comes, and the secret is not in it: that would be a third fingerprint.
func TestFingerprintRace(t *testing.T) {
	t.Parallel()
	dir, side := t.TempDir(), t.TempDir()
	secret := filepath.Join(side, "secret")
	if err := errors.Join(
		os.WriteFile(secret, []byte("secret"), 0o600), os.WriteFile(filepath.Join(side, "file"), []byte("file"), 0o600),
		os.Symlink(secret, filepath.Join(side, "link")), unix.Mkfifo(filepath.Join(side, "pipe"), 0o600),
		os.WriteFile(filepath.Join(dir, "x"), []byte("file"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			from := filepath.Join(side, []string{"file", "link", "pipe"}[i%3])
			_ = unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, filepath.Join(dir, "x"), unix.RENAME_EXCHANGE)
		}
	}()
	seen := map[runaway.Fingerprint]bool{}
	for range 500 {
		if f, err := runaway.FingerprintTree(t.Context(), dir); err == nil {
			seen[f] = true
		}
	}
	close(stop)
	<-done
	if len(seen) > 2 {
		t.Errorf("%d fingerprints of a file and a link", len(seen))
	}
}
