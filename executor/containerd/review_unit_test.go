// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/testenv"
)

// A link in a directory that the caller vouches for leads to another file of the daemon's than the one that was looked
// at.
func TestLinksLeadOutOfDaemonPath(t *testing.T) {
	t.Parallel()
	known, other := t.TempDir(), t.TempDir()
	for name, to := range map[string]string{"out": other, "in": filepath.Join(known, "dir")} {
		if err := os.Symlink(to, filepath.Join(known, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(known, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	e := &Executor{conn: &conn{}, config: Config{RuntimeDir: "/nowhere", DaemonPath: []PathMap{{From: known, To: "/srv"}}}}
	for name, want := range map[string]string{"dir": "/srv/dir", "in": "/srv/dir", "out": ""} {
		w, err := e.look(executor.Spec{Mounts: []executor.Mount{{Source: filepath.Join(known, name), Target: "/data"}}})
		switch {
		case want == "" && !errors.Is(err, executor.ErrUnsupported):
			t.Errorf("%s: %v, %+v", name, err, w.binds)
		case want != "" && (err != nil || len(w.binds) != 1 || w.binds[0].Source != want):
			t.Errorf("%s: %v, %+v", name, err, w.binds)
		}
	}
}

// What an earlier daemon left stays if it cannot be taken over: its boxes may live.
func TestTakeOverFails(t *testing.T) {
	testenv.Need(t, "root")
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\n[ \"$1\" = --version ] && echo containerd v1.7.0\nexit 1\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	for _, left := range []bool{true, false} {
		at := filepath.Join(dir, "d")
		if left {
			if err := os.MkdirAll(filepath.Join(at, "root"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := StartDaemon(t.Context(), DaemonConfig{Dir: at, Binary: broken}); !errors.Is(err,
			executor.ErrUnsupported) {
			t.Errorf("%v", err)
		}
		if exists(at) != left {
			t.Errorf("left by an earlier daemon: %t, there now: %t", left, !left)
		}
		if err := os.RemoveAll(at); err != nil {
			t.Fatal(err)
		}
	}
}

// What a pool could not remove is not only logged.
func TestPoolTellsWhatIsLeft(t *testing.T) {
	t.Parallel()
	p := &pool{ex: &Executor{config: Config{Logger: slog.New(slog.DiscardHandler)}}, stop: func() {}}
	left := &executor.CleanupError{Remains: []error{context.DeadlineExceeded}}
	p.report(&executor.SetupError{Step: "task", Err: os.ErrInvalid}) // nothing is left of it
	p.report(errors.Join(os.ErrInvalid, left))
	for range 2 * maxFailed {
		p.report(left)
	}
	err := p.close()
	if !errors.Is(err, context.DeadlineExceeded) || len(p.failed) != maxFailed {
		t.Errorf("%d, %v", len(p.failed), err)
	}
	if got := new(executor.SetupError); errors.As(err, &got) {
		t.Errorf("%v is not left", got)
	}
}
