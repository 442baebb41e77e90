// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rlimit_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/internal/runtest"
	"github.com/evoseal/containment/executor/rlimit"
	"github.com/evoseal/containment/internal/testenv"
)

func TestMounts(t *testing.T) {
	testenv.Need(t, "landlock")
	ex := newExecutor(t, rlimit.Config{})
	dir := runtest.StateDir(t) // reachable for every uid
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "data")
	if err := os.WriteFile(file, []byte("declared\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	script := "cat " + file + "; echo x > " + file + " || echo refused"
	for _, tc := range []struct {
		name   string
		mounts []executor.Mount
		want   string
	}{
		{"not declared", nil, "refused\n"},
		{"directory", []executor.Mount{{Source: dir}}, "declared\nrefused\n"},
		{"file, with its target spelt out", []executor.Mount{{Source: file, Target: dir + "/./data"}}, "declared\nrefused\n"},
	} {
		spec := sh(t, script)
		spec.Mounts = tc.mounts
		r, err := ex.Run(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Stdout.String(); got != tc.want {
			t.Errorf("%s: output %q, want %q (%s)", tc.name, got, tc.want, r.Stderr.String())
		}
	}
	for name, m := range map[string]executor.Mount{
		"elsewhere": {Source: dir, Target: "/elsewhere"}, "writable": {Source: dir, CopyOnWrite: true},
	} {
		spec := sh(t, "exit 0")
		spec.Mounts = []executor.Mount{m}
		if r, err := ex.Run(t.Context(), spec); r != nil || !errors.Is(err, executor.ErrUnsupported) {
			t.Errorf("%s: result %v, error %v; want ErrUnsupported", name, r, err)
		}
	}
	spec := sh(t, "exit 0")
	spec.Mounts = []executor.Mount{{Source: "/no/such/source"}}
	_, err := ex.Run(t.Context(), spec)
	if setup, ok := errors.AsType[*executor.SetupError](err); !ok || setup.Step != "mount" || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "/no/such/source") {
		t.Errorf("missing source: %v", err)
	}
}

// A mount that the run's uid cannot reach is an error before the start, not an empty directory inside.
func TestUnreachableMount(t *testing.T) {
	testenv.Need(t, "root")
	ex := newExecutor(t, rlimit.Config{})
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	spec := sh(t, "exit 0")
	spec.Mounts = []executor.Mount{{Source: closed}}
	r, err := ex.Run(t.Context(), spec)
	if setup, ok := errors.AsType[*executor.SetupError](err); r != nil || !ok || setup.Step != "mount" || !strings.Contains(err.Error(), closed) {
		t.Errorf("result %v, error %v; want a mount error that names %s", r, err, closed)
	}
}

func TestDir(t *testing.T) {
	ex := newExecutor(t, rlimit.Config{})
	ws := t.TempDir()
	for _, dir := range []string{"a/b", ".git/x"} {
		if err := os.MkdirAll(filepath.Join(ws, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/tmp", filepath.Join(ws, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ws, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := ex.Run(t.Context(), executor.Spec{Args: []string{"pwd"}, Workspace: ws, Dir: "a/b"})
	if err != nil || !strings.HasSuffix(r.Stdout.String(), "/work/a/b\n") {
		t.Errorf("pwd in a/b: %v, %v", r, err)
	}
	for _, dir := range []string{"missing", "file", "out", ".git", ".git/x"} {
		r, err := ex.Run(t.Context(), executor.Spec{Args: []string{"pwd"}, Workspace: ws, Dir: dir})
		if setup, ok := errors.AsType[*executor.SetupError](err); r != nil || !ok || setup.Step != "directory" {
			t.Errorf("Dir %q: result %v, error %v; want a directory error", dir, r, err)
		}
	}
}

// What tier 1 cannot enforce for this caller is refused; a list of protected paths is such a wish as well.
func TestReadOnlyIsRefusedWhereItDoesNotHold(t *testing.T) {
	testenv.Need(t, "unprivileged")
	ex := newExecutor(t, rlimit.Config{})
	spec := sh(t, "exit 0")
	spec.ReadOnly = []string{"gate.txt"}
	r, err := ex.Run(t.Context(), spec)
	u, ok := errors.AsType[*executor.UnsupportedError](err)
	if r != nil || !ok || u.Missing != executor.ProtectedReadOnly {
		t.Errorf("result %v, error %v; want ErrUnsupported for ProtectedReadOnly", r, err)
	}
}

func TestConfigChangesPromises(t *testing.T) {
	all := newExecutor(t, rlimit.Config{}).Capabilities()
	for _, tc := range []struct {
		name   string
		config rlimit.Config
		lost   executor.Capability
	}{
		{"sockets", rlimit.Config{Sockets: rlimit.SocketsAll}, executor.NetworkOff},
		{"unix sockets", rlimit.Config{Sockets: rlimit.SocketsUnix}, executor.NetworkOff},
		{"disk", rlimit.Config{DiskScratch: true}, executor.DiskBounded},
	} {
		got := newExecutor(t, tc.config).Capabilities()
		if got.Has(tc.lost) {
			t.Errorf("%s: %v is still promised", tc.name, tc.lost)
		}
		if all.Has(executor.CleanEnv|executor.OutputBounded) && !got.Has(executor.CleanEnv|executor.OutputBounded) {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
	if os.Getuid() != 0 {
		if got := newExecutor(t, rlimit.Config{PathMetadata: true}).Capabilities(); got.Has(executor.WorkspaceIsolated) {
			t.Errorf("with PathMetadata an ordinary caller is promised %v", got)
		}
	}
}

func TestBadConfig(t *testing.T) {
	for name, c := range map[string]rlimit.Config{
		"sockets": {Sockets: 9}, "negative size": {WorkspaceBytes: -1}, "reads": {Reads: []string{"/no/such/file"}},
		"relative state": {StateDir: "/dev/null/x"},
	} {
		ex, err := rlimit.New(t.Context(), c)
		if ex != nil || !errors.Is(err, executor.ErrUnsupported) || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v, %v; want ErrUnsupported", name, ex, err)
		}
		if u, ok := errors.AsType[*executor.UnsupportedError](err); ok && (u.Reason == "" || u.Fix == "") {
			t.Errorf("%s: reason %q, fix %q", name, u.Reason, u.Fix)
		}
	}
}

// A state directory that somebody else could have prepared is refused.
func TestForeignStateDir(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(runtest.StateDir(t), link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{open, link} {
		if ex, err := rlimit.New(t.Context(), rlimit.Config{StateDir: dir}); ex != nil || !errors.Is(err, executor.ErrUnsupported) {
			t.Errorf("%s: %v, %v; want ErrUnsupported", dir, ex, err)
		}
	}
}

func TestClosed(t *testing.T) {
	ex := newExecutor(t, rlimit.Config{})
	if err := ex.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := ex.Run(t.Context(), sh(t, "exit 0")); r != nil || !errors.Is(err, executor.ErrClosed) {
		t.Errorf("result %v, error %v; want ErrClosed", r, err)
	}
	if err := ex.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}

// The largest possible limits are limits, and do not overflow into none.
func TestHugeLimits(t *testing.T) {
	ex := newExecutor(t, rlimit.Config{})
	spec := sh(t, "exit 0")
	spec.Limits = executor.Limits{
		Wall: math.MaxInt64, CPU: math.MaxInt64, CPUs: 8192, Memory: math.MaxInt64, Disk: math.MaxInt64, FileSize: math.MaxInt64,
		Output: math.MaxInt64, ArtifactBytes: math.MaxInt64, Processes: math.MaxInt32, OpenFiles: math.MaxInt32, ArtifactFiles: math.MaxInt32,
	}
	r, err := ex.Run(t.Context(), spec)
	if err != nil || !r.OK() {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestEnforcedNamesEveryLimit(t *testing.T) {
	ex := newExecutor(t, rlimit.Config{})
	r, err := ex.Run(t.Context(), sh(t, "exit 0"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range r.Enforced {
		names = append(names, e.Limit)
		if e.By == "" || e.Scope == "" {
			t.Errorf("%s: by %q, scope %q", e.Limit, e.By, e.Scope)
		}
		if e.By != executor.ByNone && e.Value == 0 && len(names) <= 11 {
			t.Errorf("%s: enforced by %s with no value", e.Limit, e.By)
		}
	}
	want := []string{"Wall", "CPU", "CPUs", "Memory", "Disk", "FileSize", "Output", "ArtifactBytes", "Processes", "OpenFiles", "ArtifactFiles"}
	for one := range ex.Capabilities().All() {
		want = append(want, one.String())
	}
	if got := strings.Join(names, " "); got != strings.Join(want, " ") {
		t.Errorf("entries %q, want %q", got, want)
	}
	if r.Usage.Wall <= 0 || r.Timing.Setup <= 0 || r.Timing.Teardown <= 0 || r.Usage.CPUBy == executor.ByNone {
		t.Errorf("usage %+v, timing %+v", r.Usage, r.Timing)
	}
}

// Stdin reaches the payload; a reader that never ends does not keep the run.
func TestStdin(t *testing.T) {
	ex := newExecutor(t, rlimit.Config{})
	spec := sh(t, "cat")
	spec.Stdin = strings.NewReader(strings.Repeat("line\n", 50_000))
	if r, err := ex.Run(t.Context(), spec); err != nil || r.Stdout.Total != 250_000 {
		t.Errorf("%v, %v", r, err)
	}
	spec = sh(t, "head -c 3")
	block := make(chan struct{})
	defer close(block)
	spec.Stdin = readerFunc(func(p []byte) (int, error) {
		if len(p) > 3 {
			return copy(p, "abc"), nil
		}
		<-block
		return 0, errors.New("unblocked")
	})
	start := time.Now()
	if r, err := ex.Run(t.Context(), spec); err != nil || r.Stdout.String() != "abc" || time.Since(start) > 10*time.Second {
		t.Errorf("%v, %v after %v", r, err, time.Since(start))
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
