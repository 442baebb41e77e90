// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd"
)

// A file system that is mounted below the source of a mount is as read-only as the source, although everybody may write
// to it on the host.
func TestMountBelowMount(t *testing.T) {
	t.Parallel()
	ex := usual(t)
	source := filepath.Join(shortDir(t), "source")
	below := filepath.Join(source, "below")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", below, "tmpfs", 0, "size=65536,mode=1777"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(below, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(below, "seen"), []byte("seen"), 0o644); err != nil {
		t.Fatal(err)
	}
	result, err := ex.Run(t.Context(), executor.Spec{
		Args: []string{"sh", "-c", "cat /data/below/seen; echo bad > /data/below/written"}, Workspace: t.TempDir(),
		Mounts: []executor.Mount{{Source: source, Target: "/data"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Stdout.String(); got != "seen" {
		t.Errorf("read %q, %s", got, result.Stderr)
	}
	if _, err := os.Stat(filepath.Join(below, "written")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a run wrote to a file system of the host: %v", err)
	}
}

// What remains of a box that waited is removed beside the next run: its processes are dead when Run returns, and Close
// waits for the rest.
func TestWarmBoxIsBuried(t *testing.T) {
	t.Parallel()
	at := daemon(t)
	ex := at.open(t, containerd.Config{Root: containerd.Root{Reads: hostReads}, Warm: containerd.Warm{Size: 2}})
	warm := 0
	for i := 0; warm < 3 && i < 50; i++ {
		result, err := ex.Run(t.Context(), executor.Spec{Args: []string{"sh", "-c", "sleep 291 & exit 4"},
			Workspace: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if result.ExitCode != 4 {
			t.Errorf("%v, %d, %s", result.Cause, result.ExitCode, result.Detail)
		}
		for _, e := range result.Enforced {
			if e.Limit == executor.FreshPerRun.String() && strings.Contains(e.Note, "kept warm") {
				warm++
				t.Log(result.Timing)
			}
		}
		for _, p := range processes(t, at) {
			if strings.Contains(p, "sleep 291") {
				t.Errorf("alive after Run: %s", p)
			}
		}
		time.Sleep(100 * time.Millisecond) // for the filler
	}
	if warm < 3 {
		t.Errorf("%d of the runs had a box that waited", warm)
	}
	if err := ex.Close(); err != nil {
		t.Error(err)
	}
	if found := census(t, at); len(found) > 0 {
		t.Errorf("left behind: %q", found)
	}
}
