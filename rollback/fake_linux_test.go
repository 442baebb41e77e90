// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"cmp"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/rollback/internal/object"
	"github.com/evoseal/containment/rollback/internal/pack"
)

// Checkpoints made of objects alone, without a tree on a disk: for the tests of the store.

// fakeDir is a directory: a string is a file's bytes, a fakeLink a link, a fakeDir a directory, an object.Entry itself.
type fakeDir map[string]any

type fakeLink string

const fakeKey = "0123456789abcdef0123456789abcdef"

func fakeStore(t testing.TB, dir string, o *Options) *Store {
	t.Helper()
	if o == nil {
		o = &Options{Sync: SyncProcess}
	}
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// fakeManifest stores the objects of a tree and returns what is missing for a checkpoint of it but for the number.
func fakeManifest(t testing.TB, s *Store, d fakeDir) manifest {
	t.Helper()
	w := s.newWriter()
	m := manifest{TreeKey: fakeKey, Tree: "/work/tree", Kind: User, Limits: s.options.Limits, Exclude: s.options.Exclude}
	m.Root = fakeTree(t, w, d, &m)
	m.Root.Name = ""
	var err error
	if m.Added, err = w.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

func fakeTree(t testing.TB, w *pack.Writer, d fakeDir, m *manifest) object.Entry {
	t.Helper()
	var entries []object.Entry
	for _, name := range slices.Sorted(maps.Keys(d)) {
		e := object.Entry{Name: name, Mode: 0o644, Sec: 1_000_000, Nsec: 5}
		switch v := d[name].(type) {
		case object.Entry:
			e = v
			m.Files, m.Bytes = m.Files+1, m.Bytes+e.Size
		case fakeLink:
			e.Kind, e.Mode, e.Target = object.Link, 0o777, string(v)
			m.Links++
		case string:
			k, err := w.Add(object.Blob, []byte(v))
			if err != nil {
				t.Fatal(err)
			}
			e.Kind, e.Size, e.Data = object.File, int64(len(v)), k
			m.Files, m.Bytes = m.Files+1, m.Bytes+e.Size
		case fakeDir:
			e = fakeTree(t, w, v, m)
			e.Name = name
			m.Dirs++
		}
		entries = append(entries, e)
	}
	k, err := w.Add(object.Tree, object.EncodeTree(entries))
	if err != nil {
		t.Fatal(err)
	}
	return object.Entry{Kind: object.Dir, Mode: 0o755, Sec: 2_000_000, Data: k, Content: object.ContentDigest(entries)}
}

// fakeCheckpoint seals one of the tree fakeKey.
func fakeCheckpoint(t testing.TB, s *Store, d fakeDir) Checkpoint {
	t.Helper()
	return fakeSeal(t, s, fakeManifest(t, s, d))
}

func fakeSeal(t testing.TB, s *Store, m manifest) Checkpoint {
	t.Helper()
	leave, err := s.enter(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	c, err := s.seal(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func fakeAged(t testing.TB, s *Store, d fakeDir, kind Kind, age time.Duration) Checkpoint {
	t.Helper()
	m := fakeManifest(t, s, d)
	m.Kind, m.Time = kind, time.Now().Add(-age)
	return fakeSeal(t, s, m)
}

// fakeSample is a tree with everything in it.
func fakeSample() fakeDir {
	return fakeDir{
		"a": "alpha", "empty": "", "none": fakeDir{}, "name\n": "newline",
		"dir":  fakeDir{"b": "beta", "sub": fakeDir{"c": strings.Repeat("c", 5000)}},
		"link": fakeLink("dir/b"), "gone": fakeLink("nowhere"), "out": fakeLink("../x"), "abs": fakeLink("/etc/passwd"),
	}
}

// storeFiles returns the files of a store below one of its directories.
func storeFiles(t testing.TB, s *Store, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(s.path, dir), func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			paths = append(paths, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// flipBit changes one bit of a file in place.
func flipBit(t testing.TB, file string, bit int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	_, err = f.ReadAt(b[:], bit/8)
	if err == nil {
		b[0] ^= 1 << (bit % 8)
		_, err = f.WriteAt(b[:], bit/8)
	}
	if err := cmp.Or(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
