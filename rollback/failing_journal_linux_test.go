// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRecoverOnAFullStore: a journal that cannot be written anew does not cost the one that is there. Without it nobody
// would know that the tree is half of each.
func TestRecoverOnAFullStore(t *testing.T) {
	t.Parallel()
	for _, failing := range []string{"create", "write", "sync", "rename", "syncdir"} {
		b := newCrashBench(t, scratchy)
		order := crashOrder{Store: b.store, Tree: b.tree, ID: b.old.ID, Options: scratchy, Step: "restore/apply", Nth: 20}
		if !crash(t, order) {
			t.Fatal("it did not die")
		}
		b.open(scratchy)
		b.s.hook = func(step string) {
			if step == "recover/staged" {
				b.s.inject = func(op string) error {
					if op == failing {
						return unix.ENOSPC
					}
					return nil
				}
			}
		}
		_, err := b.s.Recover(t.Context())
		if !isPending(err) || !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("%s fails: %v", failing, err)
		}
		b.s.hook, b.s.inject = nil, nil
		if _, err := os.Stat(filepath.Join(b.store, journalPath(b.key()))); err != nil {
			t.Errorf("%s fails: %v", failing, err)
		}
		if _, err := b.s.Checkpoint(t.Context(), b.tree, Meta{}); !isPending(err) {
			t.Errorf("%s fails: a checkpoint of a mixed tree: %v", failing, err)
		}
		_, err = b.s.Recover(t.Context())
		check(t, err)
		same(t, failing+" failed", b.good, picture(t, b.tree))
	}
}

// TestSecondJournalFails: the same within one restore that somebody else's writing sent into a second round.
func TestSecondJournalFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, scratchy)
	good := picture(t, b.tree)
	spoil(t, b.tree)
	b.s.hook = func(step string) {
		if step == "restore/applied" {
			b.s.hook = nil
			b.write("a", "again")
			b.s.inject = func(op string) error {
				if op == "rename" {
					return unix.EIO
				}
				return nil
			}
		}
	}
	_, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
	b.s.inject = nil
	if !isPending(err) {
		t.Fatal(err)
	}
	if _, err := b.s.Digest(t.Context(), b.tree); !isPending(err) {
		t.Errorf("then a digest: %v", err)
	}
	_, err = b.s.Recover(t.Context())
	check(t, err)
	same(t, "after Recover", good, picture(t, b.tree))
}

// TestJournalWithoutItsSafety: what cannot be told from a stale journal is neither applied nor set aside.
func TestJournalWithoutItsSafety(t *testing.T) {
	t.Parallel()
	for _, damage := range []string{"changed", "gone"} {
		b := interrupted(t)
		before := picture(t, b.tree)
		ids, err := b.s.journalIDs()
		check(t, err)
		name := filepath.Join(b.store, manifestPath(ids[1]))
		whole, err := os.ReadFile(name)
		check(t, err)
		check(t, os.Remove(name))
		if damage == "changed" {
			check(t, os.WriteFile(name, whole[1:], 0o600))
		}
		if rs, err := b.s.Recover(t.Context()); !errors.Is(err, ErrCorrupt) || len(rs) > 0 {
			t.Errorf("%s: %+v, %v", damage, rs, err)
		}
		if _, err := b.s.Checkpoint(t.Context(), b.tree, Meta{}); !isPending(err) {
			t.Errorf("%s: a checkpoint: %v", damage, err)
		}
		same(t, damage, before, picture(t, b.tree))
		check(t, os.WriteFile(name, whole, 0o600))
		_, err = b.s.Recover(t.Context())
		check(t, err)
		same(t, damage+", brought back", b.good, picture(t, b.tree))
	}
}

// TestStagingReplaced: whoever puts something else in the place of staging after a crash does not keep Recover from its
// work, and neither does a store that is opened with another policy than the restore was begun with.
func TestStagingReplaced(t *testing.T) {
	t.Parallel()
	o := Options{Sync: SyncProcess, Foreign: ForeignQuarantine, Limits: Limits{FileSize: 10_000}}
	for what, replace := range map[string]func(b *crashBench, name string){
		"file":      func(b *crashBench, name string) { check(b.t, os.WriteFile(name, []byte("mine"), 0o600)) },
		"link":      func(b *crashBench, name string) { check(b.t, os.Symlink("/etc", name)) },
		"nothing":   func(*crashBench, string) {},
		"too large": func(b *crashBench, _ string) { b.write("src/huge", string(make([]byte, 20_000))) },
	} {
		b := newCrashBench(t, o)
		order := crashOrder{Store: b.store, Tree: b.tree, ID: b.old.ID, Options: o, Step: "restore/apply", Nth: 20}
		if !crash(t, order) {
			t.Fatal("it did not die")
		}
		staging, err := filepath.Glob(b.path(".rollback-*"))
		check(t, err)
		if what != "too large" {
			check(t, os.RemoveAll(staging[0]))
		}
		replace(b, staging[0])
		b.open(Options{Sync: SyncProcess, Limits: o.Limits})
		rs, err := b.s.Recover(t.Context())
		check(t, err)
		same(t, what, b.good, picture(t, b.tree))
		if want := what != "nothing"; (len(rs[0].Quarantined) == 1) != want {
			t.Errorf("%s: quarantined %+v", what, rs[0].Quarantined)
		}
	}
}

// TestDamagedMarkerOfOneTree: it costs the tree that it is of, and no other.
func TestDamagedMarkerOfOneTree(t *testing.T) {
	t.Parallel()
	b := newBench(t, scratchy)
	key := b.key()
	other := filepath.Join(filepath.Dir(b.tree), "other")
	check(t, os.Mkdir(other, 0o755))
	c, err := b.s.Checkpoint(t.Context(), other, Meta{})
	check(t, err)
	check(t, b.s.Close())
	flipBit(t, filepath.Join(b.store, registrationPath(key)), 100)
	b.open(scratchy)
	check(t, os.WriteFile(other+"/new", nil, 0o644))
	if _, err := b.s.Restore(t.Context(), c.ID, other); err != nil {
		t.Errorf("the other tree: %v", err)
	}
	if _, err := b.s.Restore(t.Context(), b.old.ID, b.tree); !errors.Is(err, ErrCorrupt) {
		t.Errorf("the tree itself: %v", err)
	}
	if _, err := b.s.Recover(t.Context()); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Recover: %v", err)
	}
}

// TestQuarantineIsReportedAgain: a crash after something was moved to quarantine does not keep anybody from hearing of it.
func TestQuarantineIsReportedAgain(t *testing.T) {
	t.Parallel()
	b := interrupted(t)
	check(t, b.s.Close())
	b.write("a", "after the crash")
	b.write("src/odd\xff", "and this")
	for range 2 {
		order := crashOrder{Store: b.store, Tree: b.tree, Options: scratchy, Step: "recover/settled", Nth: 1}
		if !crash(t, order) {
			t.Fatal("it did not die")
		}
	}
	b.open(scratchy)
	rs, err := b.s.Recover(t.Context())
	check(t, err)
	same(t, "recovered", b.good, picture(t, b.tree))
	if len(rs) != 1 {
		t.Fatalf("%+v", rs)
	}
	b.quarantined(rs[0].Quarantined, map[string]string{"a": "after the crash", "src/odd\xff": "and this"})
}
