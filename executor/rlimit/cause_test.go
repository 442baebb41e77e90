// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rlimit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/rlimit"
	"github.com/evoseal/containment/internal/testenv"
)

// stateDir is a directory that a run's uid can pass through, unlike those of t.TempDir for another uid.
func sh(t testing.TB, script string) executor.Spec {
	return executor.Spec{Args: []string{"sh", "-c", script}, Workspace: t.TempDir()}
}

// Every cause is produced by a real run. Cases that need a cgroup or a sized file system say so by what they need.
func TestCauses(t *testing.T) {
	ex := newExecutor(t, rlimit.Config{})
	for _, tc := range []struct {
		name   string
		script string
		limits executor.Limits
		needs  executor.Capability
		want   executor.Cause
		hit    string
	}{
		{"exit 0", "exit 0", executor.Limits{}, 0, executor.CauseExited, ""},
		{"exit 42", "exit 42", executor.Limits{}, 0, executor.CauseExited, ""},
		{"exit 139", "exit 139", executor.Limits{}, 0, executor.CauseExited, ""},
		{"segv", "kill -SEGV $$", executor.Limits{}, 0, executor.CauseSignalled, ""},
		{"kill", "kill -KILL $$", executor.Limits{}, 0, executor.CauseSignalled, ""},
		{"wall", "sleep 60", executor.Limits{Wall: 200 * time.Millisecond}, 0, executor.CauseWallTimeout, "Wall"},
		{"cpu", "while :; do :; done", executor.Limits{CPU: 300 * time.Millisecond}, 0, executor.CauseCPUTimeout, "CPU"},
		{
			"cpu of four children", "for i in 1 2 3 4; do (while :; do :; done) & done; wait",
			executor.Limits{CPU: 800 * time.Millisecond, CPUs: 2}, executor.CPUBounded, executor.CauseCPUTimeout, "CPU",
		},
		{"output", "while :; do echo yes; done", executor.Limits{Output: 1 << 16}, 0, executor.CauseOutputLimit, "Output"},
		{"error output", "while :; do echo yes >&2; done", executor.Limits{Output: 1 << 16}, 0, executor.CauseOutputLimit, "Output"},
		{
			"file size", "exec dd if=/dev/zero of=f bs=64k count=100", executor.Limits{FileSize: 1 << 20}, 0,
			executor.CauseFileSize, "FileSize",
		},
		{
			"memory", "exec tail /dev/zero", executor.Limits{Memory: 32 << 20}, executor.MemoryBounded,
			executor.CauseOutOfMemory, "Memory",
		},
		{
			"memory of a child", "tail /dev/zero; exit 0", executor.Limits{Memory: 32 << 20}, executor.MemoryBounded,
			executor.CauseOutOfMemory, "Memory",
		},
		{
			"processes", "for i in $(seq 40); do sleep 5 & done; exit 0", executor.Limits{Processes: 10},
			executor.ProcessesBounded, executor.CauseProcessLimit, "Processes",
		},
		{
			"disk", "dd if=/dev/zero of=f bs=64k count=1000; exit 0", executor.Limits{Disk: 4 << 20}, executor.DiskBounded,
			executor.CauseDiskFull, "Disk",
		},
		{
			"disk of the temporary directory", "cat /dev/zero > $TMPDIR/f; exit 0", executor.Limits{Disk: 4 << 20}, executor.DiskBounded,
			executor.CauseDiskFull, "Disk",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := sh(t, tc.script)
			spec.Limits, spec.Require = tc.limits, tc.needs
			r, err := ex.Run(t.Context(), spec)
			if missing := ex.Capabilities().Missing(tc.needs); missing != 0 {
				if !errors.Is(err, executor.ErrUnsupported) {
					t.Errorf("without %v: error %v, want ErrUnsupported", missing, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.Cause != tc.want {
				t.Errorf("cause %v (%s), want %v; exit %d, signal %v, hits %v, stderr %q",
					r.Cause, r.Detail, tc.want, r.ExitCode, r.Signal, r.Hits, r.Stderr.String())
			}
			if r.OK() != (tc.want == executor.CauseExited && r.ExitCode == 0) {
				t.Errorf("OK is %v with cause %v and code %d", r.OK(), r.Cause, r.ExitCode)
			}
			if got := hitNames(r); tc.hit != "" && !strings.Contains(got, tc.hit) {
				t.Errorf("hits %q, want %s", got, tc.hit)
			}
		})
	}
}

func hitNames(r *executor.Result) string {
	var names []string
	for _, h := range r.Hits {
		names = append(names, h.Limit)
	}
	return strings.Join(names, " ")
}

func TestExitStatusAndSignal(t *testing.T) {
	ex := newExecutor(t, rlimit.Config{})
	for script, want := range map[string]struct {
		code int
		sig  syscall.Signal
	}{"exit 139": {139, 0}, "kill -SEGV $$": {-1, syscall.SIGSEGV}, "kill -ABRT $$": {-1, syscall.SIGABRT}, "exit 255": {255, 0}} {
		r, err := ex.Run(t.Context(), sh(t, script))
		if err != nil {
			t.Fatal(err)
		}
		if r.ExitCode != want.code || r.Signal != want.sig {
			t.Errorf("%s: code %d, signal %v; want %d, %v", script, r.ExitCode, r.Signal, want.code, want.sig)
		}
	}
}

func TestCannotExecute(t *testing.T) {
	ex := newExecutor(t, rlimit.Config{})
	dir := t.TempDir()
	for name, file := range map[string]struct {
		content string
		mode    os.FileMode
	}{"plain": {"text", 0o644}, "script": {"#!/no/such\n", 0o755}, "garbage": {"\x7fELFgarbage", 0o755}} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(file.content), file.mode); err != nil {
			t.Fatal(err)
		}
	}
	for program, want := range map[string]executor.Cause{
		"no-such-program": executor.CauseNotFound, "./no-such": executor.CauseNotFound, "/no/such": executor.CauseNotFound,
		"./script": executor.CauseNotFound, "./plain": executor.CauseNotExecutable, "./garbage": executor.CauseNotExecutable,
		"/": executor.CauseNotExecutable, "plain/x": executor.CauseNotFound,
	} {
		r, err := ex.Run(t.Context(), executor.Spec{Args: []string{program}, Workspace: dir})
		if err != nil {
			t.Errorf("%s: %v", program, err)
			continue
		}
		if r.Cause != want || r.ExitCode != -1 || r.OK() {
			t.Errorf("%s: cause %v, code %d; want %v, -1", program, r.Cause, r.ExitCode, want)
		}
		if mentions := strings.Contains(r.Detail, "interpreter"); mentions != (program == "./script") {
			t.Errorf("%s: detail %q", program, r.Detail)
		}
	}
}

func TestCancel(t *testing.T) {
	ex := newExecutor(t, rlimit.Config{})
	t.Run("before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r, err := ex.Run(ctx, sh(t, "exit 0")); r != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("result %v, error %v; want none, context.Canceled", r, err)
		}
	})
	t.Run("during", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		spec := sh(t, "echo begun; sleep 60")
		spec.Stdout = writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
		start := time.Now()
		r, err := ex.Run(ctx, spec)
		if err != nil {
			t.Fatal(err)
		}
		if r.Cause != executor.CauseCancelled || r.Stdout.String() != "begun\n" {
			t.Errorf("cause %v, output %q", r.Cause, r.Stdout.String())
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("took %v", d)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// The program that dies of SIGSYS uses the 32-bit system call table, which the filter refuses.
func TestPolicyDenied(t *testing.T) {
	testenv.Need(t, "python3")
	ex := newExecutor(t, rlimit.Config{})
	spec := sh(t, "")
	spec.Args = []string{"/usr/bin/python3", "-c", "import ctypes; ctypes.CDLL(None).syscall(0x40000000 | 39)"}
	r, err := ex.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if r.Cause != executor.CausePolicyDenied || r.Signal != syscall.SIGSYS {
		t.Errorf("cause %v, signal %v, stderr %q; want policy-denied, SIGSYS", r.Cause, r.Signal, r.Stderr.String())
	}
}
