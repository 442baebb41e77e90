// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRaces: R7, R8. Somebody changes the tree between the scan and the apply; the tree becomes the checkpoint's all
// the same, what he wrote is in quarantine, and nothing outside the root changes.
func TestRaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		race func(b *bench, outside string)
		want map[string]string // in quarantine
	}{
		{"file changed", func(b *bench, _ string) {
			b.write("a", "new words")
		}, map[string]string{"a": "new words"}},
		{"changed, same size and time", func(b *bench, _ string) {
			st, err := os.Stat(b.path("a"))
			check(b.t, err)
			check(b.t, os.WriteFile(b.path("a"), []byte("BAD"), 0o644))
			check(b.t, os.Chtimes(b.path("a"), st.ModTime(), st.ModTime()))
		}, map[string]string{"a": "BAD"}},
		{"file to be removed changed", func(b *bench, _ string) {
			b.write("src/added", "precious")
		}, map[string]string{"src/added": "precious"}},
		{"link at a file", func(b *bench, outside string) {
			check(b.t, os.Remove(b.path("a")))
			check(b.t, os.Symlink(filepath.Join(outside, "canary"), b.path("a")))
		}, nil},
		{"link at a missing file", func(b *bench, outside string) {
			check(b.t, os.Symlink(filepath.Join(outside, "canary"), b.path("src/b")))
		}, nil},
		{"link at the parent", func(b *bench, outside string) {
			check(b.t, os.Rename(b.path("src"), b.path("away")))
			check(b.t, os.Symlink(outside, b.path("src")))
		}, nil},
		{"link at a parent to be made", func(b *bench, outside string) {
			check(b.t, os.Symlink(outside, b.path("src/deep")))
		}, nil},
		{"directory at a file", func(b *bench, _ string) {
			check(b.t, os.Remove(b.path("a")))
			check(b.t, os.Mkdir(b.path("a"), 0o755))
		}, nil},
		{"files at missing names", func(b *bench, _ string) {
			b.write("src/b", "mine")
			b.write("empty", "mine too")
		}, map[string]string{"src/b": "mine", "empty": "mine too"}},
		{"file added in a directory to be removed", func(b *bench, _ string) {
			b.write("new/dir/late", "late")
		}, map[string]string{"new/dir/late": "late"}},
		{"file added in a directory whose name is needed", func(b *bench, _ string) {
			b.write("swap-file/now/late", "later")
		}, nil},
		{"file added beside", func(b *bench, _ string) {
			b.write("src/beside", "beside")
		}, map[string]string{"src/beside": "beside"}},
		{"everything removed already", func(b *bench, _ string) {
			for _, name := range []string{"a", "src", "new", "swap-file", "swap-dir", "link"} {
				check(b.t, os.RemoveAll(b.path(name)))
			}
		}, map[string]string{}},
		{"another directory with the same names", func(b *bench, _ string) {
			check(b.t, os.Rename(b.path("src"), filepath.Join(filepath.Dir(b.tree), "stolen")))
			b.write("src/b", "theirs")
			b.write("src/zero", "not zero")
		}, map[string]string{"src/b": "theirs", "src/zero": "not zero"}},
		{"modes", func(b *bench, _ string) {
			check(b.t, os.Chmod(b.path("run"), 0o777))
			check(b.t, os.Chmod(b.path("src"), 0o700))
		}, map[string]string{}},
	} {
		for _, at := range []string{"restore/staged", "restore/committed"} {
			b := newBench(t, scratchy)
			good := picture(t, b.tree)
			spoil(t, b.tree)
			outside := filepath.Join(filepath.Dir(b.tree), "outside")
			check(t, os.Mkdir(outside, 0o755))
			check(t, os.WriteFile(filepath.Join(outside, "canary"), []byte("canary"), 0o644))
			check(t, os.WriteFile(filepath.Join(outside, "b"), []byte("canary"), 0o644))
			before := picture(t, outside)
			b.s.hook = func(step string) {
				if step == at {
					b.s.hook = nil
					c.race(b, outside)
				}
			}
			r, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
			if err != nil {
				t.Errorf("%s at %s: %v", c.name, at, err)
				continue
			}
			what := c.name + " at " + at
			same(t, what, good, picture(t, b.tree))
			same(t, what+": outside", before, picture(t, outside))
			if r.Digest != b.old.Digest || b.digest() != b.old.Digest {
				t.Errorf("%s: another digest", what)
			}
			if c.want != nil {
				b.quarantined(r.Quarantined, c.want)
			}
		}
	}
}

// TestEndlessRace: a writer that never stops cannot be overtaken; the restore says so and can be finished later.
func TestEndlessRace(t *testing.T) {
	t.Parallel()
	b := newBench(t, scratchy)
	good := picture(t, b.tree)
	spoil(t, b.tree)
	b.s.hook = func(step string) {
		if step == "restore/applied" {
			b.write("a", "again")
		}
	}
	r, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
	if !isPending(err) || r == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	b.s.hook = nil
	rs, err := b.s.Recover(t.Context())
	check(t, err)
	same(t, "recovered", good, picture(t, b.tree))
	if len(rs) != 1 || len(rs[0].Quarantined) == 0 {
		t.Errorf("%+v", rs)
	}
}
