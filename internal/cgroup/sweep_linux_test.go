// SPDX-License-Identifier: Apache-2.0

package cgroup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/evoseal/containment/internal/cgroup"
)

// TestRemoveDirs: what a crash left is killed and removed, groups inside the group included.
func TestRemoveDirs(t *testing.T) {
	t.Parallel()
	h := host(t)
	name := fmt.Sprintf("test-%d-left", os.Getpid())
	g, err := h.Create(name, cgroup.Limits{Processes: 60})
	if err != nil {
		t.Fatal(err)
	}
	startReady(t, g, "tree")
	inner := startReady(t, g, "sleep")
	for _, d := range g.Dirs() {
		deep := filepath.Join(d, "own", "deeper")
		if err := os.MkdirAll(deep, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(deep, "cgroup.procs"), fmt.Append(nil, inner.Process.Pid), 0); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := cgroup.RemoveDirs(ctx, h.Dirs(name)); err != nil {
		t.Fatal(err)
	}
	absent(t, h.Dirs(name))
	if err := cgroup.RemoveDirs(ctx, h.Dirs(name)); err != nil {
		t.Errorf("nothing to remove: %v", err)
	}
	if err := g.Remove(ctx); err != nil {
		t.Errorf("the group was removed by another: %v", err)
	}
}

// TestRemoveDirsRefuses: a list that was tampered with removes nothing.
func TestRemoveDirsRefuses(t *testing.T) {
	t.Parallel()
	h := host(t)
	parent := filepath.Dir(h.Dirs("x")[0])
	stranger := filepath.Join(parent, fmt.Sprintf("stranger-%d", os.Getpid()))
	plain := filepath.Join(t.TempDir(), "containment-x")
	for _, dir := range []string{stranger, plain} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	defer os.Remove(stranger)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(parent, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		stranger, plain, "", "/", "containment-x", parent + "/containment-",
		parent + "/containment-x/../" + filepath.Base(stranger), parent + "//containment-x", parent + "/containment-a b",
	} {
		if err := cgroup.RemoveDirs(t.Context(), []string{path}); !errors.Is(err, cgroup.ErrName) {
			t.Errorf("%q: error %v, want ErrName", path, err)
		}
	}
	if err := cgroup.RemoveDirs(t.Context(), []string{link + "/containment-x"}); err == nil {
		t.Error("a path through a link was followed")
	}
	for _, dir := range []string{stranger, plain} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}
