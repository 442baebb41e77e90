// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bubblewrap_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/bubblewrap"
	"github.com/evoseal/containment/executor/internal/runtest"
	"github.com/evoseal/containment/internal/testenv"
)

var _ executor.Fingerprinter = (*bubblewrap.Executor)(nil)

// What changes how runs are made changes the fingerprint, and nothing else does.
func TestFingerprint(t *testing.T) {
	testenv.Need(t, "bubblewrap")
	state := runtest.StateDir(t)
	seen := map[string]string{}
	for name, c := range map[string]bubblewrap.Config{
		"default":   {},
		"reads":     {Reads: []string{"/usr", "/bin", "/lib", "/lib64"}},
		"on disk":   {DiskScratch: true},
		"workspace": {WorkspaceBytes: 1 << 40},
	} {
		c.StateDir = state
		first, second := newExecutor(t, c).Fingerprint(), newExecutor(t, c).Fingerprint()
		if first != second || first == "" {
			t.Errorf("%s: %q, and then %q", name, first, second)
		}
		if other, taken := seen[first]; taken {
			t.Errorf("%s has the fingerprint of %s: %s", name, other, first)
		}
		seen[first] = name
	}
}

// The program is what it is on disk now: one that was replaced since is another one, and one that is gone is none.
func TestFingerprintOfProgram(t *testing.T) {
	testenv.Need(t, "bubblewrap")
	found, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(found)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // a root caller's runs start it under another uid
		t.Fatal(err)
	}
	path := filepath.Join(dir, "bwrap")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	ex := newExecutor(t, bubblewrap.Config{Path: path})
	before := ex.Fingerprint()
	if err := os.WriteFile(path, append(data, "more"...), 0o755); err != nil {
		t.Fatal(err)
	}
	if after := ex.Fingerprint(); after == before || after == "" {
		t.Errorf("the program has changed: %q", after)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if gone := ex.Fingerprint(); gone != "" {
		t.Errorf("the program is gone: %q", gone)
	}
}
