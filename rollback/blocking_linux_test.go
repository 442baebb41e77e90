// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback/internal/object"
)

// TestBlockingNames: whoever writes to a tree can make names that look like the staging of another store. Under
// ForeignQuarantine they are no obstacle; otherwise a real one must be finished first, and the rest is reported.
func TestBlockingNames(t *testing.T) {
	t.Parallel()
	foreign := stagingName(stagingTag("another store", "another tree"), &object.Entry{})
	for _, c := range []struct {
		name    string
		pending bool // under ForeignKeep
	}{{foreign, true}, {".rollback-evil", false}, {keptPrefix + "0123456789abcdef-0-0-0", false}} {
		for _, policy := range []ForeignPolicy{ForeignKeep, ForeignQuarantine} {
			b := newBench(t, Options{Sync: SyncProcess, Foreign: policy})
			good := picture(t, b.tree)
			b.write("a", "bad")
			b.write(c.name+"/payload", "theirs")
			plan, planErr := b.s.Plan(t.Context(), b.old.ID, b.tree)
			r, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
			if pending := c.pending && policy == ForeignKeep; isPending(err) != pending || isPending(planErr) != pending {
				t.Errorf("%s, policy %d: %v, plan %v", c.name, policy, err, planErr)
			}
			if err != nil {
				continue
			}
			if policy == ForeignKeep {
				if len(r.Kept) != 1 || r.Kept[0].Path != c.name {
					t.Errorf("%s: kept %+v", c.name, r.Kept)
				}
				continue
			}
			same(t, c.name, good, picture(t, b.tree))
			b.quarantinedPaths(plan.Quarantined, c.name)
			b.quarantinedPaths(r.Quarantined, c.name)
			if data, err := os.ReadFile(r.Quarantined[0].Where + "/payload"); err != nil || string(data) != "theirs" {
				t.Errorf("%s: %q, %v", c.name, data, err)
			}
		}
	}
}

// TestBlockingFile: not even the very name that our staging could have is an obstacle, if it is no directory.
func TestBlockingFile(t *testing.T) {
	t.Parallel()
	for _, policy := range []ForeignPolicy{ForeignKeep, ForeignQuarantine} {
		b := newBench(t, Options{Sync: SyncProcess, Foreign: policy})
		name := stagingName(stagingTag(b.s.id, b.key()), &object.Entry{})
		b.write("a", "bad")
		b.write(name, "a file")
		if rs, err := b.s.Recover(t.Context()); err != nil || len(rs) != 1 || len(rs[0].Kept) != 1 {
			t.Errorf("policy %d: Recover: %+v, %v", policy, rs, err)
		}
		r, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
		check(t, err)
		if policy == ForeignQuarantine {
			b.quarantinedPaths(r.Quarantined, name)
		} else if len(r.Kept) != 1 {
			t.Errorf("kept %+v", r.Kept)
		}
	}
}

func (b *bench) quarantinedPaths(list []Quarantined, want ...string) {
	b.t.Helper()
	var got []string
	for _, q := range list {
		got = append(got, q.Path)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("quarantine:\n%s", diff)
	}
}

// TestBlockingModes: a directory that its owner may not list or write to can be moved aside all the same, with what is
// in it and its mode.
func TestBlockingModes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dir  string // closed
		mode os.FileMode
		root bool     // also where modes bind nobody
		gone []string // quarantined
	}{
		{"extra/.git", 0o555, true, []string{"extra/.git"}},
		{"extra/.git", 0, true, []string{"extra/.git"}},
		{"shut", 0, false, []string{"shut"}},
		{"src", 0, false, []string{"src"}},
		{"src/deep", 0o311, false, []string{"src/deep"}},
	} {
		b := newBench(t, Options{Sync: SyncProcess, Foreign: ForeignQuarantine})
		good := picture(t, b.tree)
		b.write("a", "bad")
		check(t, os.MkdirAll(b.path(c.dir), 0o755))
		b.write(c.dir+"/in", "within")
		check(t, os.Chmod(b.path(c.dir), c.mode))
		r, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
		if err != nil {
			_ = os.Chmod(b.path(c.dir), 0o755)
			t.Errorf("%s, mode %o: %v", c.dir, c.mode, err)
			continue
		}
		got := picture(t, b.tree)
		if c.dir == "src" || c.dir == "src/deep" { // what was hard-linked with what is in it is one file no more
			if got, err := b.s.Digest(t.Context(), b.tree); err != nil || got != b.old.Digest {
				t.Errorf("%s: another tree, %v", c.dir, err)
			}
		} else {
			same(t, c.dir, good, got)
		}
		if os.Geteuid() == 0 && !c.root {
			continue
		}
		b.quarantinedPaths(r.Quarantined, c.gone...)
		for _, q := range r.Quarantined {
			st, err := os.Stat(q.Where)
			check(t, err)
			if st.Mode().Perm() != c.mode {
				t.Errorf("%s had mode %o, has %o", c.dir, c.mode, st.Mode().Perm())
			}
			check(t, os.Chmod(q.Where, 0o755))
			if data, err := os.ReadFile(q.Where + "/in"); err != nil || string(data) != "within" {
				t.Errorf("%s: %q, %v", c.dir, data, err)
			}
		}
	}
}

// TestSparseFileNeedsNoSpace: what has to be free is what will be written, not the size that a file says it has.
func TestSparseFileNeedsNoSpace(t *testing.T) {
	t.Parallel()
	const size = 1 << 40
	b := newBench(t, Options{Sync: SyncProcess, Limits: Limits{FileSize: 2 * size, Bytes: 4 * size}})
	check(t, os.WriteFile(b.path("sparse"), []byte("head"), 0o644))
	check(t, os.Truncate(b.path("sparse"), size))
	var err error
	b.old, err = b.s.Checkpoint(t.Context(), b.tree, Meta{})
	check(t, err)
	check(t, os.Remove(b.path("sparse")))
	_, err = b.s.Restore(t.Context(), b.old.ID, b.tree)
	check(t, err)
	var st unix.Stat_t
	check(t, unix.Stat(b.path("sparse"), &st))
	if st.Size != size || st.Blocks > 64<<20/512 {
		t.Errorf("%d bytes in %d blocks", st.Size, st.Blocks)
	}
}

// TestSetIDFollowsItsOwner: the bit of a file means its owner. A restore that cannot know or give the owner must not
// make a program of it that runs with somebody else's rights.
func TestSetIDFollowsItsOwner(t *testing.T) {
	t.Parallel()
	const other = 65533
	b := newBench(t, scratchy)
	owner := os.Geteuid()
	check(t, os.WriteFile(b.path("tool"), []byte("#!"), 0o755))
	if owner == 0 {
		owner = other
		check(t, os.Chown(b.path("tool"), other, other))
	}
	check(t, unix.Chmod(b.path("tool"), 0o4755))
	r, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
	check(t, err)
	_, err = b.s.Restore(t.Context(), r.Safety, b.tree) // undo
	check(t, err)
	var st unix.Stat_t
	check(t, unix.Lstat(b.path("tool"), &st))
	if st.Mode&0o7777 != 0o4755 || int(st.Uid) != owner {
		t.Errorf("mode %o of user %d, want 4755 of %d", st.Mode&0o7777, st.Uid, owner)
	}
	if os.Geteuid() == 0 {
		return
	}
	// Nobody but root can give it to its owner.
	m, err := b.s.manifest(r.Safety)
	check(t, err)
	x := b.s.newRestorer(r.Safety, m, &target{})
	p := &plan{put: []operation{{path: "tool", want: object.Entry{Kind: object.File, Mode: 0o4755, UID: 0}}}}
	if err := x.checkOwners(p); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a set-user-ID file of root: %v", err)
	}
}
