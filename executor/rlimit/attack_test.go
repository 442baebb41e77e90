// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rlimit_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/internal/runtest"
	"github.com/evoseal/containment/executor/rlimit"
	"github.com/evoseal/containment/internal/testenv"
)

// What a review of this executor by attack has found, once each.

func python(t *testing.T, ex *rlimit.Executor, script string, more func(*executor.Spec)) *executor.Result {
	t.Helper()
	testenv.Need(t, "python3")
	spec := executor.Spec{Args: []string{"/usr/bin/python3", "-c", script}, Workspace: t.TempDir()}
	if more != nil {
		more(&spec)
	}
	r, err := ex.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A datagram pair could send to any socket that has a name, connected or not.
func TestDatagramPairReachesNobody(t *testing.T) {
	ex := newExecutor(t, rlimit.Config{})
	dir := runtest.StateDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sock")
	host, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	script := `
import socket
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    try:
        a, b = socket.socketpair(socket.AF_UNIX, kind)
        a.sendto(b"escaped", "` + path + `")
        print("sent")
    except OSError as e:
        print("refused")
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
a.send(b"pair"); print(b.recv(9).decode())`
	r := python(t, ex, script, nil)
	if got := r.Stdout.String(); got != "refused\nrefused\npair\n" {
		t.Errorf("output %q, stderr %q", got, r.Stderr.String())
	}
	if err := host.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := host.Read(make([]byte, 100)); err == nil {
		t.Errorf("the host received %d bytes", n)
	}
}

// With the caller's uid, opening a file of a mount to read would be enough to change its mode.
func TestMountKeepsItsMetadata(t *testing.T) {
	ex := newExecutor(t, rlimit.Config{})
	dir := runtest.StateDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	var before, after unix.Stat_t
	if err := unix.Stat(file, &before); err != nil {
		t.Fatal(err)
	}
	script := `
import os, fcntl
f = os.open("` + file + `", os.O_RDONLY)
def attempt(what, *args):
    try: what(*args)
    except OSError: pass
attempt(os.fchmod, f, 0o4755)
attempt(os.utime, f, (1, 1))
attempt(os.setxattr, f, "user.x", b"x")
attempt(os.chmod, "` + file + `", 0o777)
attempt(os.utime, "` + file + `", (1, 1))
attempt(fcntl.fcntl, f, 1024, 1)
print("reached")`
	r := python(t, ex, script, func(s *executor.Spec) { s.Mounts = []executor.Mount{{Source: dir}} })
	if r.Stdout.String() != "reached\n" {
		t.Fatalf("output %q, stderr %q", r.Stdout.String(), r.Stderr.String())
	}
	if err := unix.Stat(file, &after); err != nil {
		t.Fatal(err)
	}
	if before.Mode != after.Mode || before.Mtim != after.Mtim {
		t.Errorf("mode %o → %o, time %v → %v", before.Mode, after.Mode, before.Mtim, after.Mtim)
	}
	if n, err := unix.Getxattr(file, "user.x", nil); err == nil {
		t.Errorf("an attribute of %d bytes was set", n)
	}
}

// Runs that are under way when the executor is closed end like others, and leave nothing.
func TestCloseDuringRuns(t *testing.T) {
	state := runtest.StateDir(t)
	for range 5 {
		ex, err := open(t.Context(), state)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				r, err := ex.Run(t.Context(), sh(t, "sleep 0.1; exit 3"))
				if err == nil && r.ExitCode != 3 || err != nil && !errors.Is(err, executor.ErrClosed) {
					t.Errorf("%v, %v", r, err)
				}
			})
		}
		time.Sleep(20 * time.Millisecond)
		if err := ex.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
	runtest.TracesGone(t, state)
}

// A payload that closes its workspace to its own uid does not take its artifacts, or its verdict, away.
func TestClosedWorkspaceStillGivesArtifacts(t *testing.T) {
	ex := newExecutor(t, rlimit.Config{})
	dest := t.TempDir()
	spec := sh(t, "echo data > out; python3 -c 'import os; os.fchmod(os.open(\".\", os.O_RDONLY), 0)'; chmod 0 . 2>/dev/null; exit 0")
	spec.Artifacts, spec.ArtifactDir = []string{"out"}, dest
	r, err := ex.Run(t.Context(), spec)
	if err != nil || !r.OK() || len(r.Artifacts) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// The kernel starts a pipe handler for a core dump at every limit but 1, as root of the host.
func TestCoreLimitStopsPipeHandlers(t *testing.T) {
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil {
		t.Fatal(err)
	}
	want := "0"
	if pattern[0] == '|' {
		want = "1"
	}
	ex := newExecutor(t, rlimit.Config{})
	r, err := ex.Run(t.Context(), sh(t, "cat /proc/self/limits"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(r.Stdout.String()) {
		if rest, ok := strings.CutPrefix(line, "Max core file size"); ok {
			if f := strings.Fields(rest); f[0] != want || f[1] != want {
				t.Errorf("core limits %q, want %s twice", f, want)
			}
			return
		}
	}
	t.Errorf("no core limit in %q", r.Stdout.String())
}

// Huge pages are the machine's; no memory limit of a run counts them.
func TestNoHugePages(t *testing.T) {
	ex := newExecutor(t, rlimit.Config{})
	r := python(t, ex, `
import mmap
try:
    mmap.mmap(-1, 2 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)
    print("mapped")
except OSError as e:
    print(e.errno)`, nil)
	if got := r.Stdout.String(); got != "12\n" {
		t.Errorf("output %q, stderr %q; want ENOMEM", got, r.Stderr.String())
	}
}

// What is hidden in the copy must not be visible in the original through another right to read.
func TestOriginalIsNotReadable(t *testing.T) {
	testenv.Need(t, "landlock")
	ws := t.TempDir()
	if err := os.WriteFile(filepath.Join(ws, ".env"), []byte("SECRET"), 0o644); err != nil {
		t.Fatal(err)
	}
	ex := newExecutor(t, rlimit.Config{})
	for name, source := range map[string]string{"itself": ws, "above": filepath.Dir(ws)} {
		spec := executor.Spec{Args: []string{"cat", filepath.Join(ws, ".env")}, Workspace: ws, Mounts: []executor.Mount{{Source: source}}}
		if r, err := ex.Run(t.Context(), spec); r != nil || !errors.Is(err, executor.ErrInvalidSpec) {
			t.Errorf("mount of the workspace, %s: %v, %v", name, r, err)
		}
	}
	spec := executor.Spec{Args: []string{"true"}, Workspace: ws, Mounts: []executor.Mount{{Source: "/proc/self/root"}}}
	if r, err := ex.Run(t.Context(), spec); r != nil || err == nil {
		t.Errorf("mount of the root by another name: %v", r)
	}
	wide := newExecutor(t, rlimit.Config{Reads: []string{"/usr", filepath.Dir(ws)}})
	if r, err := wide.Run(t.Context(), executor.Spec{Args: []string{"true"}, Workspace: ws}); r != nil || !errors.Is(err, executor.ErrUnsupported) {
		t.Errorf("workspace below a readable path: %v, %v", r, err)
	}
}
