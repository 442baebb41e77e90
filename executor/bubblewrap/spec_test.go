// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bubblewrap_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/bubblewrap"
	"github.com/evoseal/containment/internal/testenv"
)

func sh(t testing.TB, script string) executor.Spec {
	t.Helper()
	return executor.Spec{Args: []string{"sh", "-c", script}, Workspace: t.TempDir()}
}

// mustRun demands a verdict.
func mustRun(t testing.TB, ex executor.Executor, spec executor.Spec) *executor.Result {
	t.Helper()
	r, err := ex.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// says demands the output of a script.
func says(t testing.TB, ex executor.Executor, spec executor.Spec, want string) {
	t.Helper()
	if r := mustRun(t, ex, spec); r.Stdout.String() != want {
		t.Errorf("output %q, want %q; cause %v, stderr %q", r.Stdout.String(), want, r.Cause, r.Stderr.String())
	}
}

// write makes files, and the directories above them, for everybody to read.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMounts(t *testing.T) {
	ex := newExecutor(t, bubblewrap.Config{})
	dir := openDir(t)
	write(t, dir, map[string]string{"data": "declared\n", "sub/more": "more\n"})
	file := filepath.Join(dir, "data")
	for _, tc := range []struct {
		name, at string
		mount    executor.Mount
		want     string
	}{
		{"in its place", dir + "/data", executor.Mount{Source: dir}, "declared\nrefused\n"},
		{"a file", file, executor.Mount{Source: file}, "declared\nrefused\n"},
		{"elsewhere", "/opt/x/data", executor.Mount{Source: dir, Target: "/opt/x/"}, "declared\nrefused\n"},
		{"in the workspace", "/workspace/vendor/x/data", executor.Mount{Source: dir, Target: "/workspace/vendor/x"}, "declared\nrefused\n"},
		{"a file in the workspace", "in/x", executor.Mount{Source: file, Target: "/workspace/in/x"}, "declared\nrefused\n"},
		{"below HOME", "/home/containment/x/data", executor.Mount{Source: dir, Target: "/home/containment/x"}, "declared\nrefused\n"},
		{"below TMPDIR", "/tmp/x/data", executor.Mount{Source: dir, Target: "/tmp/x"}, "declared\nrefused\n"},
		{"in /etc", "/etc/x/data", executor.Mount{Source: dir, Target: "/etc/ssl/certs"}, "refused\n"},
		{"a copy", "/opt/x/data", executor.Mount{Source: dir, Target: "/opt/x", CopyOnWrite: true}, "declared\nx\nx\n"},
		{"a copy in the workspace", "v/data", executor.Mount{Source: dir, Target: "/workspace/v", CopyOnWrite: true}, "declared\nx\nx\n"},
	} {
		spec := sh(t, "cat "+tc.at+"; (echo x >> "+tc.at+") 2>/dev/null && tail -n1 "+tc.at+" && tail -n1 "+tc.at+" || echo refused")
		spec.Mounts = []executor.Mount{tc.mount}
		t.Run(tc.name, func(t *testing.T) { says(t, ex, spec, tc.want) })
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "declared\n" {
		t.Errorf("the original is %q, %v", text, err)
	}
}

// Nothing of the host can take the place of what the executor itself puts there, or lie in the kernel's directories.
func TestTargetsAreRefused(t *testing.T) {
	ex := newExecutor(t, bubblewrap.Config{})
	dir := openDir(t)
	for _, target := range []string{
		"/proc", "/proc/sys", "/dev", "/dev/null", "/dev/shm", "/etc", "/home", "/home/containment", "/tmp", "/workspace", "/var", "/var/tmp",
	} {
		spec := sh(t, "exit 0")
		spec.Mounts = []executor.Mount{{Source: dir, Target: target}}
		if r, err := ex.Run(t.Context(), spec); r != nil || !errors.Is(err, executor.ErrUnsupported) || !strings.Contains(err.Error(), target) {
			t.Errorf("%s: result %v, error %v; want ErrUnsupported", target, r, err)
		}
	}
}

func TestMountFaults(t *testing.T) {
	ex := newExecutor(t, bubblewrap.Config{})
	dir, ws := openDir(t), openDir(t)
	write(t, dir, map[string]string{"file": "x"})
	write(t, ws, map[string]string{"taken": "x"})
	if err := os.Symlink("/etc", filepath.Join(ws, "link")); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		mount executor.Mount
		text  string
	}{
		"missing":                      {executor.Mount{Source: "/no/such/source"}, "/no/such/source"},
		"a copied file":                {executor.Mount{Source: dir + "/file", CopyOnWrite: true}, "CopyOnWrite"},
		"a file in its place":          {executor.Mount{Source: dir, Target: "/workspace/taken"}, "taken"},
		"through a link":               {executor.Mount{Source: dir, Target: "/workspace/link/x"}, "link"},
		"onto a read-only file system": {executor.Mount{Source: dir, Target: "/usr/no-such-directory-there"}, "no-such-directory-there"},
	} {
		spec := executor.Spec{Args: []string{"true"}, Workspace: ws, Mounts: []executor.Mount{tc.mount}}
		r, err := ex.Run(t.Context(), spec)
		setup, ok := errors.AsType[*executor.SetupError](err)
		if r != nil || !ok || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: result %v, error %v; want a set-up error with %q", name, r, err, tc.text)
		}
		if name == "missing" && (setup.Step != "mount" || !errors.Is(err, fs.ErrNotExist)) {
			t.Errorf("missing source: %v", err)
		}
	}
	if _, err := os.Lstat("/usr/no-such-directory-there"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a mount point was made on the host: %v", err)
	}
}

// A mount that the run's uid cannot reach is an error before the start, not an empty directory inside.
func TestUnreachableMount(t *testing.T) {
	testenv.Need(t, "root")
	ex := newExecutor(t, bubblewrap.Config{})
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
	ex := newExecutor(t, bubblewrap.Config{})
	ws := t.TempDir()
	write(t, ws, map[string]string{"a/b/f": "", ".git/x/f": "", "secret/f": "", "file": ""})
	if err := os.Symlink("/tmp", filepath.Join(ws, "out")); err != nil {
		t.Fatal(err)
	}
	says(t, ex, executor.Spec{Args: []string{"pwd"}, Workspace: ws, Dir: "a/b"}, "/workspace/a/b\n")
	for _, dir := range []string{"missing", "file", "out", ".git", ".git/x", "secret"} {
		r, err := ex.Run(t.Context(), executor.Spec{Args: []string{"pwd"}, Workspace: ws, Dir: dir, Hidden: []string{"secret"}})
		setup, ok := errors.AsType[*executor.SetupError](err)
		if r != nil || !ok || setup.Step != "directory" && setup.Step != "working directory" {
			t.Errorf("Dir %q: result %v, error %v; want a directory error", dir, r, err)
		}
	}
}

// Read-only and hidden paths, attacked with what mounts allow: moving what is above, writing below, putting another in place.
func TestProtected(t *testing.T) {
	ex := newExecutor(t, bubblewrap.Config{})
	ws := t.TempDir()
	write(t, ws, map[string]string{"tests/golden/f": "golden", "tests/free": "x", "conf/key": "secret", "keys/k": "secret", "src/a": "x"})
	script := `
try() { what=$1; shift; "$@" 2>/dev/null && echo "$what"; }
try write sh -c 'echo y > tests/golden/f'
try remove rm -f tests/golden/f
try replace sh -c 'echo y > tests/n && mv -f tests/n tests/golden/f'
try move mv tests tests2
try move mv tests/golden tests/g2
try below touch tests/golden/new
try read cat conf/key keys/k
try list ls keys
try put sh -c 'echo y > conf/key'
try put rm -f conf/key
try move mv conf conf2
try chmod chmod 777 conf/key keys tests/golden/f
try mode sh -c 'ln tests/golden/f tests/other && echo y > tests/other'
cat tests/golden/f; echo
echo y > tests/free && echo y > src/a && mv src src2 && touch new tests/new conf/new && echo free`
	spec := executor.Spec{
		Args: []string{"sh", "-c", script}, Workspace: ws, ReadOnly: []string{"tests/golden", "not/there"},
		Hidden: []string{"conf/key", "keys", "nor/there"},
	}
	says(t, ex, spec, "golden\nfree\n")
	spec.Args = []string{"sh", "-c", "ls -d not nor 2>/dev/null; mkdir -p not/there nor/there && echo made"}
	says(t, ex, spec, "made\n")
	spec.Args, spec.ReadOnly = []string{"sh", "-c", "touch new 2>/dev/null || echo no; rm -rf src 2>/dev/null; cat src/a"}, []string{"."}
	says(t, ex, spec, "no\nx")
}

// A rule that leads through a link would hold for the link.
func TestRulesThroughLinks(t *testing.T) {
	ex := newExecutor(t, bubblewrap.Config{})
	ws := t.TempDir()
	write(t, ws, map[string]string{"real/f": "x"})
	for name, target := range map[string]string{"dir": "real", "file": "real/f"} {
		if err := os.Symlink(target, filepath.Join(ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"file", "dir", "dir/f"} {
		spec := executor.Spec{Args: []string{"true"}, Workspace: ws, ReadOnly: []string{path}}
		if r, err := ex.Run(t.Context(), spec); r != nil || err == nil || !strings.Contains(err.Error(), "link") {
			t.Errorf("%s: result %v, error %v; want one about a link", path, r, err)
		}
	}
}

func TestClosed(t *testing.T) {
	ex := newExecutor(t, bubblewrap.Config{})
	if err := ex.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := ex.Run(t.Context(), sh(t, "exit 0")); r != nil || !errors.Is(err, executor.ErrClosed) {
		t.Errorf("result %v, error %v; want ErrClosed", r, err)
	}
}

// A workspace in a directory that every run sees would be open there with everything that is hidden.
func TestWorkspaceInView(t *testing.T) {
	dir := openDir(t)
	write(t, dir, map[string]string{"ws/f": "x"})
	ex := newExecutor(t, bubblewrap.Config{Reads: append(bubblewrapReads(t), dir)})
	spec := executor.Spec{Args: []string{"true"}, Workspace: filepath.Join(dir, "ws")}
	if r, err := ex.Run(t.Context(), spec); r != nil || !errors.Is(err, executor.ErrUnsupported) {
		t.Errorf("result %v, error %v; want ErrUnsupported", r, err)
	}
	says(t, ex, sh(t, "cat "+dir+"/ws/f"), "x")
}

// bubblewrapReads are those of the default that this host has.
func bubblewrapReads(t testing.TB) (list []string) {
	t.Helper()
	for _, path := range bubblewrap.DefaultReads() {
		if _, err := os.Lstat(path); err == nil {
			list = append(list, path)
		}
	}
	return list
}

func TestEnforced(t *testing.T) {
	for name, without := range map[string]bool{"all": false, "without cgroups and mounts": true} {
		ex, err := bubblewrap.Without(t.Context(), bubblewrap.Config{}, without, without)
		closeLater(t, ex, err)
		r := mustRun(t, ex, sh(t, "exit 0"))
		by := map[string]executor.Enforcement{}
		for _, e := range r.Enforced {
			by[e.Limit] = e
			if e.By == "" || e.Scope == "" {
				t.Errorf("%s: %s: by %q, scope %q", name, e.Limit, e.By, e.Scope)
			}
		}
		for one := range ex.Capabilities().All() {
			if by[one.String()].By == "" || by[one.String()].By == executor.ByNone {
				t.Errorf("%s: %v is held by nothing", name, one)
			}
		}
		if !ex.Capabilities().Has(executor.MemoryBounded) {
			if by["Memory"].By != executor.ByRlimit || by["Memory"].Scope != executor.PerProcess {
				t.Errorf("%s: memory %+v, want the fallback named", name, by["Memory"])
			}
			if by["Processes"].By != executor.ByRlimit || by["Processes"].Scope != executor.PerRun || by["Processes"].Note == "" {
				t.Errorf("%s: processes %+v, want the fallback named", name, by["Processes"])
			}
		}
	}
}

// Without cgroups RLIMIT_NPROC holds in the run's own user namespace, whoever else has the same uid.
func TestProcessesWithoutCgroup(t *testing.T) {
	ex, err := bubblewrap.Without(t.Context(), bubblewrap.Config{}, true, false)
	closeLater(t, ex, err)
	spec := sh(t, "i=0; while [ $i -lt 30 ]; do sleep 3 & i=$((i+1)); done; echo $i")
	spec.Limits.Processes = 8
	r := mustRun(t, ex, spec)
	if strings.Contains(r.Stdout.String(), "30") || !strings.Contains(r.Stderr.String(), "ork") {
		t.Errorf("output %q, stderr %q", r.Stdout.String(), r.Stderr.String())
	}
	spec.Args = []string{"sh", "-c", "sleep 0.1 & sleep 0.1 & sleep 0.1 & wait; echo three"}
	spec.Limits.Processes = 4
	says(t, ex, spec, "three\n")
}
