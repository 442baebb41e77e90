// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestIdentity: exactly one of the two identities is met, whoever runs the tests.
func TestIdentity(t *testing.T) {
	root, ordinary := table["root"].probe(), table["unprivileged"].probe()
	if (root == nil) == (ordinary == nil) {
		t.Errorf("root: %v, unprivileged: %v", root, ordinary)
	}
	if (root == nil) != (os.Getuid() == 0) {
		t.Errorf("uid %d, root: %v", os.Getuid(), root)
	}
}

// TestEveryComponent probes the whole table on this host. Under "all" it fails for what the gate should have; the log
// shows the rest.
func TestEveryComponent(t *testing.T) {
	for _, name := range Components() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Need(t, name)
			if err := table[name].probe(); err != nil {
				t.Errorf("Need returned although the probe says %v", err)
			}
		})
	}
}

func TestProbesLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	before := mounts(t)
	for name, probe := range map[string]func() error{
		"reflink": probeReflink, "tmpfs-mount": probeTmpfsMount, "cgroup": probeCgroup,
		"loop-mount": probeLoopMount,
	} {
		t.Logf("%s: %v", name, probe())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left in the temporary directory: %v, %v", left, err)
	}
	if after := mounts(t); strings.Contains(after, dir) && !strings.Contains(before, dir) {
		t.Errorf("a mount is left:\n%s", after)
	}
}

// selfExe names this test binary. Its path may lie below a directory that only root can enter, so the kernel's link to
// it comes first.
func selfExe(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("/proc/self/exe"); err == nil {
		return "/proc/self/exe"
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// mounts returns the mount table, or nothing where there is none to read.
func mounts(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

func TestRunTool(t *testing.T) {
	self := selfExe(t)
	for _, c := range []struct {
		name string
		args []string
		ok   bool
	}{
		{self, []string{"-test.run=^TestIdentity$"}, true},
		{self, []string{"-test.no-such-flag"}, false},
		{filepath.Join(t.TempDir(), "missing"), nil, false},
	} {
		if err := runTool(c.name, c.args...); (err == nil) != c.ok {
			t.Errorf("%s %v: %v", c.name, c.args, err)
		}
	}
}

// TestSkipIsVisible runs this test binary as a plain `go test` would and looks at what a reader sees.
func TestSkipIsVisible(t *testing.T) {
	self := selfExe(t)
	missing := "root"
	if os.Getuid() == 0 {
		missing = "unprivileged"
	}
	for require, want := range map[string]string{"": "--- SKIP", "all": "--- SKIP", missing: "--- FAIL"} {
		cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run=^TestEveryComponent$/^"+missing+"$")
		cmd.Env = append(os.Environ(), RequireVariable+"="+require)
		out, err := cmd.CombinedOutput()
		if (err != nil) != (want == "--- FAIL") || !strings.Contains(string(out), want) {
			t.Errorf("%s=%q: %v, want %s in\n%s", RequireVariable, require, err, want, out)
		}
		if !strings.Contains(string(out), "=== ATTR") || !strings.Contains(string(out), "need."+missing+" missing") {
			t.Errorf("%s=%q: no attribute in\n%s", RequireVariable, require, out)
		}
	}
}
