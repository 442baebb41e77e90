// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback/internal/object"
)

// interrupted is a store that died right after the commit of a restore.
func interrupted(t *testing.T) *crashBench {
	t.Helper()
	b := newCrashBench(t, scratchy)
	order := crashOrder{Store: b.store, Tree: b.tree, ID: b.old.ID, Options: scratchy, Step: "restore/committed", Nth: 1}
	if !crash(t, order) {
		t.Fatal("it did not die")
	}
	b.open(scratchy)
	return b
}

// TestKillWithReadOnlyRoot: the root's mode is changed before the commit, and is right again after a crash.
func TestKillWithReadOnlyRoot(t *testing.T) {
	t.Parallel()
	for step, committed := range map[string]bool{
		"restore/opened": false, "restore/staging": false, "restore/synced": false, "restore/committed": true,
		"restore/flushed": true,
	} {
		b := newCrashBench(t, scratchy)
		check(t, os.Chmod(b.tree, 0o555))
		b.bad = picture(t, b.tree)
		if !crash(t, crashOrder{Store: b.store, Tree: b.tree, ID: b.old.ID, Options: scratchy, Step: step, Nth: 1}) {
			t.Errorf("%s is no step", step)
		}
		if isNew := b.verdict(step, scratchy); isNew != committed {
			t.Errorf("%s: new %t", step, isNew)
		}
	}
}

// TestDamagedJournal: S1. A journal that was changed is reported, and nothing is done by it.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	b := interrupted(t)
	before := picture(t, b.tree)
	name := filepath.Join(b.store, journalPath(b.key()))
	data, err := os.ReadFile(name)
	check(t, err)
	for _, bad := range [][]byte{
		data[:len(data)-1], {}, append(bytes.Clone(data), 0), bytes.Replace(data, []byte("trio"), []byte("oirt"), 1),
	} {
		check(t, os.WriteFile(name, bad, 0o600))
		if rs, err := b.s.Recover(t.Context()); !errors.Is(err, ErrCorrupt) || len(rs) > 0 {
			t.Errorf("%+v, %v", rs, err)
		}
		if _, err := b.s.Restore(t.Context(), b.old.ID, b.tree); !isPending(err) {
			t.Errorf("a restore beside a damaged journal: %v", err)
		}
		if _, err := b.s.journalIDs(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("what it needs is not known: %v", err)
		}
	}
	same(t, "nothing applied", before, picture(t, b.tree))
	check(t, os.WriteFile(name, data, 0o600))
	ids, err := b.s.journalIDs()
	if err != nil || len(ids) != 2 || ids[0] != b.old.ID {
		t.Errorf("%v, %v", ids, err)
	}
	_, err = b.s.Recover(t.Context())
	check(t, err)
	same(t, "recovered", b.good, picture(t, b.tree))
}

// TestStaleJournal: one that is older than a checkpoint of its tree comes from another time. It is set aside.
func TestStaleJournal(t *testing.T) {
	t.Parallel()
	b := interrupted(t)
	name := filepath.Join(b.store, journalPath(b.key()))
	data, err := os.ReadFile(name)
	check(t, err)
	_, err = b.s.Recover(t.Context())
	check(t, err)
	b.write("a", "newer work")
	b.again()
	before := picture(t, b.tree)
	check(t, os.WriteFile(name, data, 0o600))
	if rs, err := b.s.Recover(t.Context()); !errors.Is(err, ErrCorrupt) || len(rs) > 0 {
		t.Errorf("%+v, %v", rs, err)
	}
	same(t, "nothing applied", before, picture(t, b.tree))
	b.unchanged()
}

// TestStagingOfOthers: staging that is not this store's for this tree is reported and stays.
func TestStagingOfOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, scratchy)
	root := picture(t, b.tree)["."]
	names := []string{
		".rollback-something", keptPrefix + "0", stagingName(stagingTag("another store", b.key()), &object.Entry{}),
	}
	for _, name := range names {
		b.write(name+"/0", "theirs")
	}
	rs, err := b.s.Recover(t.Context())
	check(t, err)
	if len(rs) != 1 || len(rs[0].Kept) != 3 || rs[0].Recovered {
		t.Errorf("%+v", rs)
	}
	for _, name := range names {
		if _, err := os.Stat(b.path(name + "/0")); err != nil {
			t.Error(err)
		}
	}
	if got := picture(t, b.tree)["."]; strings.Fields(got)[0] != strings.Fields(root)[0] {
		t.Errorf("the root was %s and is %s", root, got)
	}
}

// TestStagingWithoutJournal: whatever took the journal away, what staging holds of the tree is not deleted.
func TestStagingWithoutJournal(t *testing.T) {
	t.Parallel()
	b := newCrashBench(t, scratchy)
	order := crashOrder{Store: b.store, Tree: b.tree, ID: b.old.ID, Options: scratchy, Step: "restore/applied", Nth: 1}
	if !crash(t, order) {
		t.Fatal("it did not die")
	}
	b.open(scratchy)
	staging, err := filepath.Glob(b.path(".rollback-*"))
	check(t, err)
	check(t, os.WriteFile(filepath.Join(staging[0], "0"), []byte("in no checkpoint"), 0o600))
	check(t, os.Remove(filepath.Join(b.store, journalPath(b.key()))))
	rs, err := b.s.Recover(t.Context())
	check(t, err)
	found := false
	for _, q := range rs[0].Quarantined {
		data, err := os.ReadFile(q.Where)
		found = found || err == nil && string(data) == "in no checkpoint"
	}
	if !found {
		t.Errorf("%+v", rs)
	}
	if left, err := filepath.Glob(b.path(".rollback-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestVanishedTree: a tree that is gone is passed over, unless a restore of it is unfinished.
func TestVanishedTree(t *testing.T) {
	t.Parallel()
	b := newBench(t, scratchy)
	away := b.tree + "-away"
	check(t, os.Rename(b.tree, away))
	if rs, err := b.s.Recover(t.Context()); err != nil || len(rs) > 0 {
		t.Errorf("%+v, %v", rs, err)
	}
	check(t, os.Mkdir(b.tree, 0o755))
	if rs, err := b.s.Recover(t.Context()); err != nil || len(rs) > 0 {
		t.Errorf("another directory at the path: %+v, %v", rs, err)
	}
	i := interrupted(t)
	check(t, os.Rename(i.tree, i.tree+"-away"))
	if _, err := i.s.Recover(t.Context()); err == nil {
		t.Error("an unfinished restore of a tree that is gone is no error")
	}
	check(t, os.Rename(i.tree+"-away", i.tree))
	_, err := i.s.Recover(t.Context())
	check(t, err)
	same(t, "back again", i.good, picture(t, i.tree))
	check(t, os.Remove(b.tree))
	check(t, os.Rename(away, b.tree)) // for the clean-up of newBench
}

// TestQuarantineOnAnotherFileSystem: files, links and directories are copied; what cannot be copied stays in the tree
// in a directory that nobody removes.
func TestQuarantineOnAnotherFileSystem(t *testing.T) {
	t.Parallel()
	memory := place(t, SyncProcess)
	b := newBench(t, Options{})
	check(t, b.s.Close())
	b.store = filepath.Join(memory, "store")
	b.open(Options{Foreign: ForeignQuarantine, Special: SpecialSkip})
	var one, two unix.Stat_t
	check(t, unix.Stat(b.store, &one))
	check(t, unix.Stat(b.tree, &two))
	if one.Dev == two.Dev {
		t.Log("there is one file system here only: this tests the rename")
	}
	good := b.again()
	b.write("extra/__pycache__/x", "cache")
	check(t, os.Symlink("x", b.path("extra/__pycache__/link")))
	check(t, unix.Mkfifo(b.path("src/fifo"), 0o600))
	b.s.hook = func(step string) {
		if step == "restore/committed" {
			b.s.hook = nil
			b.write("src/late", "late")
			check(t, os.Symlink("nowhere", b.path("src/late-link")))
		}
	}
	r := b.restore()
	got := picture(t, b.tree)
	var stays []string
	for name := range got {
		if strings.HasPrefix(name, ".rollback-") {
			stays = append(stays, name)
			delete(got, name)
		}
	}
	same(t, "restored", good, got)
	if len(r.Quarantined) != 4 {
		t.Errorf("%+v", r.Quarantined)
	}
	for _, q := range r.Quarantined {
		if _, err := os.Lstat(q.Where); err != nil {
			t.Error(err)
		}
		if q.Path == "extra/__pycache__" {
			if data, err := os.ReadFile(filepath.Join(q.Where, "x")); err != nil || string(data) != "cache" {
				t.Errorf("%q, %v", data, err)
			}
		}
	}
	list, err := filepath.Glob(filepath.Join(b.store, quarantineDir, "*", quarantineList))
	check(t, err)
	if len(list) != 1 {
		t.Fatalf("%d lists", len(list))
	}
	lines, err := os.ReadFile(list[0])
	check(t, err)
	if n := bytes.Count(lines, []byte("\n")); n != 4 || !bytes.Contains(lines, []byte(`"src/late-link"`)) {
		t.Errorf("the list:\n%s", lines)
	}
	if one.Dev != two.Dev && len(stays) != 2 {
		t.Errorf("what cannot be copied: %q", stays)
	}
	if _, err := b.s.Recover(t.Context()); err != nil {
		t.Error(err)
	}
	for _, name := range stays {
		if _, err := os.Lstat(b.path(name)); err != nil {
			t.Error(err)
		}
	}
}
