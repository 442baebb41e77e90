// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/testenv"
)

// TestForeign is the table of what becomes of entries that are in no checkpoint.
func TestForeign(t *testing.T) {
	t.Parallel()
	fifo := func(b *bench, p string) {
		check(b.t, os.MkdirAll(filepath.Dir(b.path(p)), 0o755))
		check(b.t, unix.Mkfifo(b.path(p), 0o600))
	}
	git := func(b *bench, p string) { b.write(p+"/.git/HEAD", "theirs"); b.write(p+"/code", "c") }
	excluded := func(b *bench, p string) { b.write(p+"/__pycache__/x", "cache"); b.write(p+"/code", "c") }
	for _, c := range []struct {
		name              string
		make              func(b *bench)
		keep, quarantined error    // what a restore returns
		stay              []string // paths that are there afterwards under ForeignKeep
		moved             []string // paths in quarantine under ForeignQuarantine
	}{
		{"git in a directory that must go", func(b *bench) { git(b, "extra/sub") }, ErrIncomplete, nil,
			[]string{"extra/sub/.git/HEAD"}, []string{"extra/sub/.git"}},
		{"excluded in a directory that must go", func(b *bench) { excluded(b, "extra") }, ErrIncomplete, nil,
			[]string{"extra/__pycache__/x"}, []string{"extra/__pycache__"}},
		{"fifo in a directory that must go", func(b *bench) { fifo(b, "extra/f") }, ErrIncomplete, nil,
			[]string{"extra/f"}, []string{"extra/f"}},
		{"git where a file was", func(b *bench) { check(b.t, os.Remove(b.path("a"))); git(b, "a") }, ErrBlocked, nil,
			nil, []string{"a/.git"}},
		{"excluded below a name of another kind", func(b *bench) {
			check(b.t, os.Remove(b.path("link")))
			excluded(b, "link/deep")
		}, ErrBlocked, nil, nil, []string{"link/deep/__pycache__"}},
		{"fifo at a name that is needed", func(b *bench) {
			check(b.t, os.Remove(b.path("a")))
			fifo(b, "a")
		}, ErrBlocked, nil, nil, []string{"a"}},
		{"fifo at a directory that is needed", func(b *bench) {
			check(b.t, os.RemoveAll(b.path("src")))
			fifo(b, "src")
		}, ErrBlocked, nil, nil, []string{"src"}},
		{"fifo beside", func(b *bench) { fifo(b, "src/f") }, nil, nil, []string{"src/f"}, []string{"src/f"}},
		{"new git and excluded beside", func(b *bench) {
			b.write("src/.git/x", "x")
			b.write("src/__pycache__/y", "y")
		}, nil, nil, []string{"src/.git/x", "src/__pycache__/y"}, nil},
	} {
		for _, policy := range []ForeignPolicy{ForeignKeep, ForeignQuarantine} {
			b := newBench(t, Options{Sync: SyncProcess, Foreign: policy})
			good := picture(t, b.tree)
			b.write("src/b", "bad")
			c.make(b)
			before := picture(t, b.tree)
			plan, planErr := b.s.Plan(t.Context(), b.old.ID, b.tree)
			r, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
			want := c.keep
			if policy == ForeignQuarantine {
				want = c.quarantined
			}
			if !errors.Is(err, want) || !errors.Is(planErr, want) {
				t.Errorf("%s, policy %d: restore %v, plan %v, want %v", c.name, policy, err, planErr, want)
				continue
			}
			got := picture(t, b.tree)
			if want == ErrBlocked {
				same(t, c.name, before, got)
				if r != nil {
					t.Errorf("%s: a restoration before the commit", c.name)
				}
				continue
			}
			if diff := cmp.Diff(plan.Changes, r.Changes); diff != "" {
				t.Errorf("%s, policy %d: plan and restore differ:\n%s", c.name, policy, diff)
			}
			if diff := cmp.Diff(plan.Kept, r.Kept); diff != "" {
				t.Errorf("%s, policy %d: kept: plan and restore differ:\n%s", c.name, policy, diff)
			}
			var moved, planned []string
			for _, q := range plan.Quarantined {
				planned = append(planned, q.Path)
			}
			for _, q := range r.Quarantined {
				moved = append(moved, q.Path)
				if q.Why == "" {
					t.Errorf("%s: %+v", c.name, q)
				}
				if _, err := os.Lstat(q.Where); err != nil {
					t.Error(err)
				}
			}
			if diff := cmp.Diff(planned, moved); diff != "" {
				t.Errorf("%s, policy %d: quarantine: plan and restore differ:\n%s", c.name, policy, diff)
			}
			if policy == ForeignKeep {
				for _, p := range c.stay {
					if _, err := os.Lstat(b.path(p)); err != nil {
						t.Errorf("%s: %v", c.name, err)
					}
				}
			} else if c.moved != nil {
				same(t, c.name, good, got)
			}
			if policy == ForeignQuarantine {
				if diff := cmp.Diff(c.moved, moved); diff != "" {
					t.Errorf("%s: moved:\n%s", c.name, diff)
				}
			}
			if _, err := os.Lstat(b.path("extra/sub/code")); err == nil {
				t.Errorf("%s: what is known stays in a directory that must go", c.name)
			}
		}
	}
}

// TestKnownSpecialFiles: a FIFO that was there at the checkpoint belongs to the tree, and is nobody's business.
func TestKnownSpecialFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{Sync: SyncProcess, Foreign: ForeignQuarantine})
	check(t, unix.Mkfifo(b.path("pipe"), 0o600))
	var err error
	b.old, err = b.s.Checkpoint(t.Context(), b.tree, Meta{})
	check(t, err)
	b.write("a", "bad")
	r, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
	check(t, err)
	if len(r.Kept)+len(r.Quarantined) > 0 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Lstat(b.path("pipe")); err != nil {
		t.Error(err)
	}
}

// TestForeignMount: a mount is never moved, whatever the policy.
func TestForeignMount(t *testing.T) {
	testenv.Need(t, "tmpfs-mount")
	t.Parallel()
	for _, policy := range []ForeignPolicy{ForeignKeep, ForeignQuarantine} {
		for place, want := range map[string]error{"extra/mnt": ErrIncomplete, "a/mnt": ErrBlocked, "src/mnt": nil} {
			b := newBench(t, Options{Sync: SyncProcess, Foreign: policy})
			if place == "a/mnt" {
				check(t, os.Remove(b.path("a")))
			}
			check(t, os.MkdirAll(b.path(place), 0o755))
			check(t, unix.Mount("tmpfs", b.path(place), "tmpfs", 0, "size=64k"))
			unmount := func() { _ = unix.Unmount(b.path(place), unix.MNT_DETACH) }
			t.Cleanup(unmount)
			b.write(place+"/inside", "inside")
			b.write("src/b", "bad")
			if _, err := b.s.Restore(t.Context(), b.old.ID, b.tree); !errors.Is(err, want) {
				t.Errorf("%s, policy %d: %v, want %v", place, policy, err, want)
			}
			if data, err := os.ReadFile(b.path(place + "/inside")); err != nil || string(data) != "inside" {
				t.Errorf("%s: %q, %v", place, data, err)
			}
			unmount()
		}
	}
}
