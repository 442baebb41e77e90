// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bubblewrap_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/bubblewrap"
	"github.com/evoseal/containment/executor/internal/runtest"
)

// A link in a declared mount on the way to another one would lead bubblewrap to the host, to make a mount point there.
func TestMountThroughLink(t *testing.T) {
	ex := newExecutor(t, bubblewrap.Config{})
	for name, cow := range map[string]bool{"read-only": false, "copied": true} {
		outside, source, other := runtest.StateDir(t), runtest.StateDir(t), runtest.StateDir(t)
		for _, dir := range []string{outside, source, other} {
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("/oldroot"+outside, filepath.Join(source, "link")); err != nil {
			t.Fatal(err)
		}
		result, err := ex.Run(t.Context(), executor.Spec{
			Args: []string{"true"}, Workspace: t.TempDir(),
			Mounts: []executor.Mount{
				{Source: source, Target: "/data", CopyOnWrite: cow}, {Source: other, Target: "/data/link/made"},
			},
		})
		if setup, ok := errors.AsType[*executor.SetupError](err); !ok || setup.Step != "mount" {
			t.Errorf("%s: %v, %v", name, result, err)
		}
		if _, err := os.Lstat(filepath.Join(outside, "made")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: something was made on the host: %v", name, err)
		}
	}
}

// Rules hold below a declared mount in the workspace as anywhere else.
func TestRulesInMount(t *testing.T) {
	ex := newExecutor(t, bubblewrap.Config{})
	source := runtest.StateDir(t)
	if err := os.Chmod(source, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{"secret": "hidden\n", "kept/file": "kept\n", "open": "open\n"} {
		path = filepath.Join(source, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for name, cow := range map[string]bool{"read-only": false, "copied": true} {
		result, err := ex.Run(t.Context(), executor.Spec{
			Args:      []string{"sh", "-c", "cat dep/secret; echo x > dep/kept/file; mv dep/kept dep/away; cat dep/kept/file dep/open"},
			Workspace: t.TempDir(), Hidden: []string{"dep/secret"}, ReadOnly: []string{"dep/kept/file"},
			Mounts: []executor.Mount{{Source: source, Target: bubblewrap.Workspace + "/dep", CopyOnWrite: cow}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(result.Stdout.Head); got != "kept\nopen\n" {
			t.Errorf("%s: %q %s", name, got, result.Stderr.Head)
		}
	}
}

// A rule may name the mount's own path.
func TestRulesOnMount(t *testing.T) {
	ex := newExecutor(t, bubblewrap.Config{})
	source := runtest.StateDir(t)
	if err := errors.Join(os.Chmod(source, 0o755), os.WriteFile(filepath.Join(source, "f"), []byte("f\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		spec executor.Spec
		want string
	}{
		"hidden":    {executor.Spec{Hidden: []string{"dep"}}, "refused\n"},
		"read-only": {executor.Spec{ReadOnly: []string{"dep"}}, "f\nrefused\n"},
	} {
		tc.spec.Args = []string{"sh", "-c", "cat dep/f; echo x > dep/g || echo refused"}
		tc.spec.Workspace = t.TempDir()
		tc.spec.Mounts = []executor.Mount{{Source: source, Target: bubblewrap.Workspace + "/dep", CopyOnWrite: true}}
		result, err := ex.Run(t.Context(), tc.spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(result.Stdout.Head); got != tc.want {
			t.Errorf("%s: %q %s", name, got, result.Stderr.Head)
		}
	}
}
