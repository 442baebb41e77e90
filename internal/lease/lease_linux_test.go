// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/internal/lease"
)

func open(t testing.TB, path string) *lease.Dir {
	t.Helper()
	d, err := lease.Open(path, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// sweep returns what was cleaned, by id.
func sweep(t *testing.T, d *lease.Dir) map[string]lease.Record {
	t.Helper()
	got := map[string]lease.Record{}
	err := d.Sweep(t.Context(), func(_ context.Context, rec lease.Record) error {
		got[rec.ID] = rec
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return got
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestKilledHolder(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	d := open(t, path)
	h := startHolder(t, "hold", path, "3")
	if got := sweep(t, d); len(got) != 0 {
		t.Errorf("leases of a live holder were taken: %v", got)
	}
	if got := files(t, path); len(got) != 3 {
		t.Errorf("files of a live holder: %v", got)
	}
	pid := h.cmd.Process.Pid
	start, err := lease.StartTime(pid)
	if err != nil {
		t.Fatal(err)
	}
	boot, err := lease.BootID()
	if err != nil || boot == "" {
		t.Fatal(boot, err)
	}
	h.kill()
	h.mustLive(t)
	want := map[string]lease.Record{}
	for _, id := range h.names {
		want[id] = lease.Record{
			ID: id, Label: "held by a child", PID: pid, StartTime: start, BootID: boot, Scratch: []string{"/scratch"},
		}
	}
	if diff := cmp.Diff(want, sweep(t, d)); diff != "" {
		t.Errorf("after the holder's death (-want +got):\n%s", diff)
	}
	if got := files(t, path); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

// Two processes share the work and never do the same piece of it.
func TestConcurrentSweeps(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	h := startHolder(t, "hold", path, "200")
	h.kill()
	var sweeps sync.WaitGroup
	outs := make([]string, 2)
	for i := range outs {
		cmd := command(t, "sweep", path)
		sweeps.Go(func() {
			out, err := cmd.Output()
			if err != nil {
				t.Error(err)
			}
			outs[i] = string(out)
		})
	}
	sweeps.Wait()
	got := strings.Fields(outs[0] + outs[1])
	slices.Sort(got)
	slices.Sort(h.names)
	if diff := cmp.Diff(h.names, got); diff != "" {
		t.Errorf("not each lease was cleaned once (-want +got):\n%s", diff)
	}
	t.Logf("shares: %d and %d", strings.Count(outs[0], "\n"), strings.Count(outs[1], "\n"))
	if left := files(t, path); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Holders of the same and of other processes come and go while sweeps run: no sweep may ever see one of their leases,
// and none of them may fail.
func TestAcquireDuringSweeps(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	d := open(t, path)
	var holders, sweepers sync.WaitGroup
	var done atomic.Bool
	for range 2 {
		sweepers.Go(func() {
			for !done.Load() {
				if got := sweep(t, d); len(got) != 0 {
					t.Errorf("a live lease was taken: %v", slices.Collect(maps.Keys(got)))
					return
				}
			}
		})
	}
	for range 64 {
		holders.Go(func() {
			for range 30 {
				l, err := d.Acquire(lease.Record{ID: lease.NewID()})
				if err != nil {
					t.Error(err)
					return
				}
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	holders.Wait()
	done.Store(true)
	sweepers.Wait()
	if left := files(t, path); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestLeaseFile(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	d := open(t, path)
	scratch := []string{"/scratch"}
	l, err := d.Acquire(lease.Record{ID: lease.NewID(), Scratch: scratch, UID: 70000})
	if err != nil {
		t.Fatal(err)
	}
	scratch[0] = "changed later"
	if rec := l.Record(); rec.Scratch[0] != "/scratch" || rec.PID != os.Getpid() || rec.UID != 70000 {
		t.Errorf("record %+v", rec)
	}
	fi, err := os.Lstat(filepath.Join(path, l.Record().ID))
	if err != nil || fi.Mode() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	if _, err := d.Acquire(lease.Record{ID: l.Record().ID}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the same id a second time: %v", err)
	}
	if err := errors.Join(l.Release(), l.Release()); err != nil {
		t.Errorf("release, twice: %v", err)
	}
	if left := files(t, path); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBadRecords(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	d := open(t, path)
	for name, rec := range map[string]lease.Record{
		"no id":         {},
		"foreign id":    {ID: "../../etc/passwd"},
		"upper case":    {ID: strings.ToUpper(lease.NewID())},
		"relative path": {ID: lease.NewID(), Scratch: []string{"scratch"}},
		"root":          {ID: lease.NewID(), Mounts: []string{"/"}},
		"dots":          {ID: lease.NewID(), Cgroups: []string{"/sys/fs/cgroup/../../.."}},
		"not UTF-8":     {ID: lease.NewID(), Scratch: []string{"/scratch\xff"}},
		"label":         {ID: lease.NewID(), Label: "\xff"},
		"too large":     {ID: lease.NewID(), Label: strings.Repeat("x", 1<<20)},
	} {
		if _, err := d.Acquire(rec); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if left := files(t, path); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestNewIDsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		id := lease.NewID()
		if seen[id] || !strings.HasPrefix(id, "containment-") || id != strings.ToLower(id) {
			t.Fatalf("id %q, seen before: %t", id, seen[id])
		}
		seen[id] = true
	}
}

// Whoever can write in /tmp can make the directory before us.
func TestUntrustedDirectory(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	real := filepath.Join(base, "real")
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{
		"link": link, "link with a slash": link + "/", "link with a dot": link + "/.", "file": file, "empty": "",
		"foreign": foreignDir(t, base),
	}
	for _, mode := range []fs.FileMode{0o777, 0o770, 0o702, 0o777 | fs.ModeSticky} {
		path := filepath.Join(base, mode.String())
		if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		paths[mode.String()] = path
	}
	for name, path := range paths {
		_, err := lease.Open(path, 0o700)
		if dirErr, ok := errors.AsType[*lease.DirError](err); !ok || dirErr.Rule == "" || dirErr.Fix == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := lease.Open(filepath.Join(base, "a", "b"), 0o700); err != nil {
		t.Errorf("missing parents: %v", err)
	}
}

// foreignDir is a directory of somebody else in which we cannot be harmed otherwise.
func foreignDir(t *testing.T, base string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		return "/usr" // root's
	}
	path := filepath.Join(base, "foreign")
	if err := errors.Join(os.Mkdir(path, 0o700), os.Chown(path, 65534, -1)); err != nil {
		t.Fatal(err)
	}
	return path
}
