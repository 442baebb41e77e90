// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/evoseal/containment/internal/testenv"
	"github.com/evoseal/containment/isolation"
)

// The real procfs can be read by everybody.
func TestObserveRealHost(t *testing.T) {
	t.Parallel()
	s := quietSources(t)
	s.Proc = "/proc"
	got := isolation.Observe(t.Context(), s)
	if got.Host == isolation.HostUnknown {
		t.Errorf("unknown: %s", got.Evidence[isolation.FactHost])
	}
}

// A directory that is closed by its owner, who may open it again, proves nothing; one of somebody else is out of reach.
func TestObserveOutOfReach(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "unprivileged")
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o000); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]isolation.Secrets{
		filepath.Join(closed, "x"): isolation.SecretsUnknown, filepath.Join(closed, "id_*"): isolation.SecretsUnknown,
		"/proc/1/cwd/x": isolation.NoSecrets,
	} {
		s := quietSources(t)
		s.Files = []string{path}
		if got := isolation.Observe(t.Context(), s); got.Secrets != want {
			t.Errorf("%s: got %v, want %v (%s)", path, got.Secrets, want, got.Evidence[isolation.FactSecrets])
		}
	}
}

// A procfs that does not answer must not hang the caller, nor must it make the host a quiet one.
func TestObserveHangs(t *testing.T) {
	t.Parallel()
	s := quietSources(t)
	fifo := filepath.Join(s.Proc, "9", "status")
	put(t, fifo+".d/x", "") // makes the directory
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if got := isolation.Observe(ctx, s); got.Host != isolation.HostUnknown || got.Secrets != isolation.NoSecrets {
		t.Errorf("%+v", got)
	}
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0) // lets the reader go, so that nothing is left behind
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
