// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoseal/containment/rollback/internal/object"
)

// all returns the errors that an error joins.
func all(err error) []error {
	if several, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // the outermost one is meant
		return several.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// TestVerifyReportsAll: three faults in three places, and one line for each checkpoint that is concerned.
func TestVerifyReportsAll(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), &Options{Sync: SyncProcess, Codec: CodecNone})
	ctx := t.Context()
	a := fakeCheckpoint(t, s, fakeDir{"d": fakeDir{"a": "AAAAAAAA"}, "x": "XXXXXXXX"})
	b := fakeCheckpoint(t, s, fakeDir{"b": "BBBBBBBB"})
	c := fakeCheckpoint(t, s, fakeDir{"c": "CCCCCCCC"})
	for _, id := range []ID{{}, a.ID, b.ID, c.ID} {
		if err := s.Verify(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"AAAAAAAA", "BBBBBBBB"} {
		damageText(t, s, text)
	}
	flipBit(t, filepath.Join(s.path, manifestPath(c.ID)), 100)
	err := s.Verify(ctx, ID{})
	if got := all(err); len(got) < 3 || !errors.Is(err, ErrCorrupt) {
		t.Errorf("%d faults: %v", len(got), got)
	}
	for _, id := range []ID{a.ID, b.ID, c.ID} {
		var found *CorruptError
		if err := s.Verify(ctx, id); !errors.As(err, &found) || found.ID != id {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := s.Get(ctx, c.ID); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
	good, bad := 0, 0
	for got, err := range s.All(ctx) {
		switch {
		case err == nil && bad == 0:
			good++
		case err != nil && got.ID == c.ID:
			bad++
		default:
			t.Errorf("%v, %v", got.ID, err)
		}
	}
	if good != 2 || bad != 1 {
		t.Errorf("%d sound, %d damaged", good, bad)
	}
}

// damageText flips a bit of a text in whichever pack has it.
func damageText(t testing.TB, s *Store, text string) {
	t.Helper()
	for _, file := range storeFiles(t, s, packsDir) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if i := strings.Index(string(data), text); i >= 0 {
			flipBit(t, file, int64(8*i))
			return
		}
	}
	t.Fatalf("no pack has %q", text)
}

// TestVerifyLies: objects whose hashes are right, and which contradict each other.
func TestVerifyLies(t *testing.T) {
	t.Parallel()
	big := object.Entry{Name: "big", Kind: object.File, Size: object.MaxBlob + 5, Data: object.Sum(object.Chunks, []byte("no list"))}
	blob := object.Entry{Name: "f", Kind: object.File, Size: 3, Data: object.Sum(object.Blob, []byte("four"))}
	for name, c := range map[string]struct {
		tree   fakeDir
		change func(m *manifest)
	}{
		"no such object":   {fakeDir{"f": blob}, nil},
		"another size":     {fakeDir{"e": "four", "f": blob}, nil},
		"no chunk list":    {fakeDir{"big": big}, nil},
		"files":            {fakeDir{"f": "x"}, func(m *manifest) { m.Files++ }},
		"dirs":             {fakeDir{"f": "x"}, func(m *manifest) { m.Dirs++ }},
		"links":            {fakeDir{"f": "x"}, func(m *manifest) { m.Links++ }},
		"bytes":            {fakeDir{"f": "x"}, func(m *manifest) { m.Bytes-- }},
		"content":          {fakeDir{"f": "x"}, func(m *manifest) { m.Root.Content[0]++ }},
		"no skipped list":  {fakeDir{}, func(m *manifest) { m.Skipped[0]++ }},
		"blob as skipped":  {fakeDir{"f": "x"}, func(m *manifest) { m.Skipped = object.Sum(object.Blob, []byte("x")).Hash }},
		"content of a dir": {fakeDir{"d": fakeDir{"f": "x"}}, nil},
	} {
		s := fakeStore(t, t.TempDir(), nil)
		m := fakeManifest(t, s, c.tree)
		if c.change != nil {
			c.change(&m)
		}
		if name == "content of a dir" {
			m.Root = lyingRoot(t, s, m.Root)
		}
		data, id, err := encodeManifest(complete(s, m), nil)
		if err == nil {
			err = s.writeFile(manifestPath(id), data)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, which := range []ID{id, {}} {
			if err := s.Verify(t.Context(), which); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func complete(s *Store, m manifest) *manifest {
	s.complete(&m, nil)
	return &m
}

// lyingRoot changes the content digest that a directory says of the first one in it.
func lyingRoot(t testing.TB, s *Store, root object.Entry) object.Entry {
	t.Helper()
	entries, err := s.tree(root.Data)
	if err != nil {
		t.Fatal(err)
	}
	entries[0].Content[0]++
	w := s.newWriter()
	if root.Data, err = w.Add(object.Tree, object.EncodeTree(entries)); err == nil {
		_, err = w.Seal(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	root.Content = object.ContentDigest(entries)
	return root
}

// TestHostileTree: a directory object with a right hash and names that must not be: nothing is read from it.
func TestHostileTree(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"..", ".", "a/b", ".git", ".GIT", "a\x00b", ""} {
		s := fakeStore(t, t.TempDir(), nil)
		m := fakeManifest(t, s, fakeDir{"x": object.Entry{Name: name, Kind: object.File, Data: object.Sum(object.Blob, nil)}})
		c := fakeSeal(t, s, m)
		if err := s.Verify(t.Context(), c.ID); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: verify: %v", name, err)
		}
		if _, err := s.Diff(t.Context(), c.ID, c.ID); err != nil {
			t.Errorf("%q: %v", name, err) // equal: nothing is read
		}
		empty := fakeCheckpoint(t, s, fakeDir{})
		if _, err := s.Diff(t.Context(), empty.ID, c.ID); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: diff: %v", name, err)
		}
		if _, err := s.Prune(t.Context(), Retention{User: 1}); !errors.Is(err, ErrCorrupt) {
			// the hostile one goes, by count, without being read
			if _, err := s.Get(t.Context(), c.ID); !errors.Is(err, ErrNotFound) {
				t.Errorf("%q: prune: %v", name, err)
			}
		}
	}
}

func TestVerifyIsCancelled(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), nil)
	c := fakeCheckpoint(t, s, fakeSample())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, id := range []ID{{}, c.ID} {
		if err := s.Verify(ctx, id); !errors.Is(err, context.Canceled) || errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
	}
}

// TestForeignManifests: what is in the directory of manifests and is none is an error, and so is one of another store.
func TestForeignManifests(t *testing.T) {
	t.Parallel()
	s, other := fakeStore(t, t.TempDir(), nil), fakeStore(t, t.TempDir(), nil)
	mine := fakeCheckpoint(t, s, fakeDir{})
	theirs := fakeCheckpoint(t, other, fakeDir{})
	data, err := os.ReadFile(filepath.Join(other.path, manifestPath(theirs.ID)))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{theirs.ID.String(), mine.ID.String() + ".bak", strings.ToUpper(theirs.ID.String())} {
		file := filepath.Join(s.path, manifestsDir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err := range s.All(t.Context()) {
			if errors.Is(err, ErrCorrupt) {
				n++
			}
		}
		if _, err := s.Prune(t.Context(), Retention{User: 1}); n != 1 || !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %d errors, prune: %v", name, n, err)
		}
		if err := s.Verify(t.Context(), ID{}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Prune(t.Context(), Retention{}); err != nil {
		t.Error(err)
	}
}

// TestEveryBitOfAManifest: each is noticed by name; the other checkpoint is not concerned.
func TestEveryBitOfAManifest(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), nil)
	c, other := fakeCheckpoint(t, s, fakeDir{"a": "b"}), fakeCheckpoint(t, s, fakeDir{})
	file := filepath.Join(s.path, manifestPath(c.ID))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range int64(8 * len(data)) {
		flipBit(t, file, bit)
		if _, err := s.manifest(c.ID); !errors.Is(err, ErrCorrupt) {
			t.Errorf("bit %d: %v", bit, err)
		}
		flipBit(t, file, bit)
	}
	for n := len(data) - 1; n >= 0; n-- {
		if err := os.Truncate(file, int64(n)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), c.ID); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := s.Get(t.Context(), other.ID); err != nil {
		t.Error(err)
	}
}
