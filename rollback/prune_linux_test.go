// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// ids returns the sound checkpoints of a store, newest first.
func ids(t testing.TB, s *Store) (list []ID) {
	t.Helper()
	for c, err := range s.All(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		list = append(list, c.ID)
	}
	return list
}

func prune(t testing.TB, s *Store, r Retention) Pruned {
	t.Helper()
	done, err := s.Prune(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(t.Context(), ID{}); err != nil {
		t.Errorf("after the prune: %v", err)
	}
	return done
}

func TestZeroRetentionDeletesNoCheckpoint(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), nil)
	for i := range 5 {
		fakeAged(t, s, fakeDir{"f": fmt.Sprint(i)}, Kind(1+i%2), time.Duration(i)*10000*time.Hour)
	}
	fakeManifest(t, s, fakeDir{"no": "checkpoint"}) // what a crash leaves of one
	before := ids(t, s)
	done := prune(t, s, Retention{})
	if diff := cmp.Diff(before, ids(t, s)); diff != "" || len(done.Checkpoints) > 0 {
		t.Error(diff, done)
	}
	if done.Packs != 1 || done.Bytes <= 0 {
		t.Errorf("the unused pack: %+v", done)
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	// Oldest first. u is a user's, s a safety checkpoint; p says pinned; then its age.
	steps := []struct {
		name string
		kind Kind
		age  time.Duration
	}{{"u1", User, 9 * hour}, {"s1", Safety, 8 * hour}, {"u2p", User, 7 * hour}, {"u3", User, 3 * hour}, {"s2", Safety, 2 * hour}, {"u4", User, hour}}
	for name, c := range map[string]struct {
		r    Retention
		want string
	}{
		"nothing":        {Retention{}, "u4 s2 u3 u2p s1 u1"},
		"one user's":     {Retention{User: 1}, "u4 s2 u2p s1"},
		"two user's":     {Retention{User: 2}, "u4 s2 u3 u2p s1"},
		"one safety":     {Retention{Safety: 1}, "u4 s2 u3 u2p u1"},
		"one of each":    {Retention{User: 1, Safety: 1}, "u4 s2 u2p"},
		"age":            {Retention{MaxAge: 150 * time.Minute}, "u4 s2 u2p"},
		"all too old":    {Retention{MaxAge: 1}, "u4 u2p"},
		"bytes":          {Retention{MaxBytes: 1}, "u4 u2p"},
		"enough bytes":   {Retention{MaxBytes: 1 << 30}, "u4 s2 u3 u2p s1 u1"},
		"age and number": {Retention{MaxAge: 500 * time.Minute, User: 2}, "u4 s2 u3 u2p s1"},
	} {
		s, names := fakeStore(t, t.TempDir(), nil), map[ID]string{}
		for _, step := range steps {
			c := fakeAged(t, s, fakeDir{"f": step.name, "shared": "x"}, step.kind, step.age)
			names[c.ID] = step.name
			if strings.HasSuffix(step.name, "p") {
				if err := s.Pin(t.Context(), c.ID, "test"); err != nil {
					t.Fatal(err)
				}
			}
		}
		done := prune(t, s, c.r)
		var left []string
		for _, id := range ids(t, s) {
			left = append(left, names[id])
		}
		if got := strings.Join(left, " "); got != c.want || len(done.Checkpoints) != len(steps)-len(left) {
			t.Errorf("%s: %s are left, want %s; %d deleted", name, got, c.want, len(done.Checkpoints))
		}
	}
}

// TestMaxBytes: the oldest go until the packs hold no more.
func TestMaxBytes(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), &Options{Sync: SyncProcess, Codec: CodecNone})
	for i := range 6 {
		fakeCheckpoint(t, s, fakeDir{"f": strings.Repeat(fmt.Sprint(i), 100_000), "g": strings.Repeat(fmt.Sprint("g", i/3), 50_000)})
	}
	before := ids(t, s)
	prune(t, s, Retention{MaxBytes: 420_000})
	st, err := s.Stats(t.Context())
	if err != nil || st.Bytes > 430_000 { // the manifests are in it
		t.Errorf("%+v, %v", st, err)
	}
	if diff := cmp.Diff(before[:3], ids(t, s)); diff != "" {
		t.Error(diff)
	}
}

// TestRetentionProperty: whatever the Retention, pinned checkpoints, the newest of each tree and those that a journal
// names survive, with every byte; and nothing is kept without a reason.
func TestRetentionProperty(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		var all []listed
		held := map[ID]bool{}
		for i := range 1 + r.IntN(30) {
			m := &manifest{Seq: uint64(100 - i), Kind: Kind(1 + r.IntN(2)), TreeKey: fmt.Sprint(r.IntN(3))}
			m.Time = time.Unix(int64(r.IntN(1000)), 0)
			id := ID{byte(i), 1}
			all = append(all, listed{id: id, m: m})
			held[id] = r.IntN(5) == 0
		}
		retention := Retention{User: r.IntN(4), Safety: r.IntN(4), MaxAge: time.Duration(r.IntN(3)) * 300 * time.Second}
		now := time.Unix(1000, 0)
		keep := retain(all, held, retention, now)
		count := map[string]int{}
		for _, l := range all {
			group := fmt.Sprint(l.m.TreeKey, l.m.Kind)
			count[group]++
			most := retention.User
			if l.m.Kind == Safety {
				most = retention.Safety
			}
			wanted := (most == 0 || count[group] <= most) && (retention.MaxAge == 0 || now.Sub(l.m.Time) <= retention.MaxAge)
			if keep[l.id] != (held[l.id] || wanted) {
				t.Errorf("seed %d: %+v, %d of its kind, kept %v", seed, l.m, count[group], keep[l.id])
			}
		}
	}
}

// TestHeldSurvive is the same over a real store, for what is held.
func TestHeldSurvive(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := fakeStore(t, t.TempDir(), nil)
		held, newest := map[ID]bool{}, map[string]ID{}
		for i := range 12 {
			m := fakeManifest(t, s, fakeDir{"f": fmt.Sprint(r.IntN(6)), "d": fakeDir{"g": fmt.Sprint(i)}})
			m.TreeKey = strings.Repeat(fmt.Sprint(r.IntN(2)), 32)
			m.Kind, m.Time = Kind(1+r.IntN(2)), time.Now().Add(-time.Duration(r.IntN(1000))*time.Hour)
			c := fakeSeal(t, s, m)
			newest[m.TreeKey] = c.ID
			if r.IntN(4) == 0 {
				held[c.ID] = true
				if err := s.Pin(t.Context(), c.ID, "x"); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, id := range newest {
			held[id] = true
		}
		prune(t, s, Retention{
			User: r.IntN(3), Safety: r.IntN(3), MaxAge: time.Duration(r.IntN(500)) * time.Hour, MaxBytes: int64(r.IntN(5000)),
		})
		left := ids(t, s)
		for id := range held {
			if !slices.Contains(left, id) {
				t.Errorf("seed %d: %s is gone", seed, id)
			}
		}
	}
}

// TestJournalledSurvive: what an unfinished restore needs is deleted by nobody, and a damaged journal stops everything.
func TestJournalledSurvive(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), nil)
	to, safety := fakeCheckpoint(t, s, fakeDir{"f": "to"}), fakeCheckpoint(t, s, fakeDir{"f": "safety"})
	other, last := fakeCheckpoint(t, s, fakeDir{"f": "other"}), fakeCheckpoint(t, s, fakeDir{"f": "last"})
	j := sampleJournal()
	j.Store, j.TreeKey, j.To, j.Safety = s.id, fakeKey, to.ID, safety.ID
	if err := s.dir.Mkdir(treesDir + "/" + fakeKey); err != nil {
		t.Fatal(err)
	}
	if err := s.writeFile(journalPath(fakeKey), j.encode(nil)); err != nil {
		t.Fatal(err)
	}
	needed, err := s.journalIDs()
	if err != nil || len(needed) != 2 {
		t.Fatalf("%v, %v", needed, err)
	}
	for _, id := range needed {
		if err := s.Delete(t.Context(), id); !errors.Is(err, ErrPending) {
			t.Error(err)
		}
	}
	prune(t, s, Retention{User: 1, Safety: 1, MaxAge: 1, MaxBytes: 1})
	if diff := cmp.Diff([]ID{last.ID, safety.ID, to.ID}, ids(t, s)); diff != "" {
		t.Errorf("%s; %s should be gone", diff, other.ID)
	}
	flipBit(t, filepath.Join(s.path, journalPath(fakeKey)), 99)
	_, pruned := s.Prune(t.Context(), Retention{User: 1})
	for i, err := range []error{pruned, s.Delete(t.Context(), to.ID), s.Verify(t.Context(), ID{})} {
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func TestPruneRefuses(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), nil)
	for _, r := range []Retention{{User: -1}, {Safety: -1}, {MaxAge: -1}, {MaxBytes: -1}, {RepackBytes: -1}} {
		if _, err := s.Prune(t.Context(), r); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// TestUnreadableStopsPrune: a damaged manifest or directory object: nothing is deleted.
func TestUnreadableStopsPrune(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, s *Store, newest ID){
		"manifest":  func(t *testing.T, s *Store, id ID) { flipBit(t, filepath.Join(s.path, manifestPath(id)), 99) },
		"directory": func(t *testing.T, s *Store, _ ID) { damageText(t, s, "name-in-the-newest") },
	} {
		s := fakeStore(t, t.TempDir(), &Options{Sync: SyncProcess, Codec: CodecNone})
		for i := range 4 {
			fakeCheckpoint(t, s, fakeDir{"f": fmt.Sprint(i)})
		}
		c := fakeCheckpoint(t, s, fakeDir{"name-in-the-newest": ""})
		damage(t, s, c.ID)
		packs, manifests := storeFiles(t, s, packsDir), storeFiles(t, s, manifestsDir)
		done, err := s.Prune(t.Context(), Retention{User: 1})
		if !errors.Is(err, ErrCorrupt) || len(done.Checkpoints) > 0 || done.Packs > 0 {
			t.Errorf("%s: %+v, %v", name, done, err)
		}
		if diff := cmp.Diff(append(packs, manifests...), append(storeFiles(t, s, packsDir), storeFiles(t, s, manifestsDir)...)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestRepack: a pack that is mostly dead is written again, within RepackBytes.
func TestRepack(t *testing.T) {
	t.Parallel()
	make2 := func() (*Store, Checkpoint) {
		s := fakeStore(t, t.TempDir(), &Options{Sync: SyncProcess, Codec: CodecNone})
		fakeCheckpoint(t, s, fakeDir{"big": strings.Repeat("b", 300_000), "keep": strings.Repeat("k", 50_000)})
		return s, fakeCheckpoint(t, s, fakeDir{"keep": strings.Repeat("k", 50_000)})
	}
	s, c := make2()
	done := prune(t, s, Retention{User: 1})
	if done.Packs != 1 || done.Bytes < 290_000 || done.Bytes > 310_000 {
		t.Errorf("%+v", done)
	}
	if again := prune(t, s, Retention{User: 1}); again.Packs != 0 || len(again.Checkpoints) != 0 {
		t.Errorf("a second time: %+v", again)
	}
	fsys, err := s.FS(c.ID)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := fs.ReadFile(fsys, "keep"); err != nil || len(data) != 50_000 {
		t.Error(err)
	}
	other, _ := make2()
	if done := prune(t, other, Retention{User: 1, RepackBytes: 1000}); done.Packs != 0 {
		t.Errorf("above RepackBytes: %+v", done)
	}
}

// TestRepackOnFullDisk: the old pack stays, and the checkpoint with it.
func TestRepackOnFullDisk(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"create", "write", "sync", "rename"} {
		s := fakeStore(t, t.TempDir(), &Options{Sync: SyncProcess, Codec: CodecNone})
		fakeCheckpoint(t, s, fakeDir{"big": strings.Repeat("b", 300_000), "keep": "k"})
		c := fakeCheckpoint(t, s, fakeDir{"keep": "k"})
		s.inject = func(o string) error {
			if o == op {
				return syscall.ENOSPC
			}
			return nil
		}
		if _, err := s.Prune(t.Context(), Retention{User: 1}); !errors.Is(err, ErrNoSpace) {
			t.Errorf("%s: %v", op, err)
		}
		s.inject = nil
		if err := s.Verify(t.Context(), ID{}); err != nil {
			t.Errorf("%s: %v", op, err)
		}
		if left := ids(t, s); !slices.Contains(left, c.ID) || len(storeFiles(t, s, s.tmp)) > 0 {
			t.Errorf("%s: %v, and %q", op, left, storeFiles(t, s, s.tmp))
		}
	}
}

// TestStats counts what there is.
func TestStats(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), nil)
	c := fakeCheckpoint(t, s, fakeDir{"f": "12345"})
	m := fakeManifest(t, s, fakeDir{"f": "12345", "g": "1"})
	m.TreeKey = strings.Repeat("f", 32)
	fakeSeal(t, s, m)
	if err := s.Pin(t.Context(), c.ID, "x"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.path, quarantineDir, "x"), make([]byte, 7), 0o600); err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, file := range append(storeFiles(t, s, packsDir), storeFiles(t, s, manifestsDir)...) {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	got, err := s.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got.Raw -= 6 // the bytes of the files; the rest are directories
	if got.Raw <= 0 {
		t.Errorf("%+v", got)
	}
	got.Raw = 0
	want := Stats{Checkpoints: 2, Pinned: 1, Trees: 2, Packs: 2, Objects: 4, Bytes: size, Quarantine: 7}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
