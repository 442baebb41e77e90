// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/evoseal/containment/rollback/internal/files"
	"github.com/evoseal/containment/rollback/internal/object"
)

// newDir is the directory of a store without a flush.
func newDir(t testing.TB) *files.Dir {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	d := &files.Dir{Root: root}
	for _, name := range []string{Dir, "tmp"} {
		if err := d.Mkdir(name); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func open(t testing.TB, d *files.Dir) *Set {
	t.Helper()
	s, err := Open(d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// store seals a pack with these blobs and returns their keys.
func store(t testing.TB, s *Set, codec Codec, blobs ...[]byte) []object.Key {
	t.Helper()
	w := s.NewWriter("tmp", codec)
	keys := make([]object.Key, len(blobs))
	for i, b := range blobs {
		var err error
		if keys[i], err = w.Add(object.Blob, b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	return keys
}

// samples are blobs of several sizes that compress and that do not.
func samples() [][]byte {
	random := make([]byte, 3000)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	return [][]byte{
		{}, {0}, []byte("hello"), bytes.Repeat([]byte("text "), 1000), random, bytes.Repeat([]byte{0}, 3<<20),
		[]byte(recordMagic), append([]byte(fileMagic), trailerMagic...),
	}
}

func TestStoreAndGet(t *testing.T) {
	t.Parallel()
	for _, codec := range []Codec{S2, Raw} {
		d := newDir(t)
		s := open(t, d)
		blobs := samples()
		keys := store(t, s, codec, blobs...)
		for _, set := range []*Set{s, open(t, d)} { // at once, and after opening again
			for i, k := range keys {
				got, err := set.Get(k)
				if err != nil || !bytes.Equal(got, blobs[i]) {
					t.Errorf("codec %d: blob %d: %v", codec, i, err)
				}
				if n, ok := set.Len(k); !ok || n != int64(len(blobs[i])) || !set.Has(k) {
					t.Errorf("codec %d: blob %d is not there, or has %d bytes", codec, i, n)
				}
			}
			faults, err := set.Check(t.Context(), 3, nil)
			if err != nil || len(faults) > 0 {
				t.Errorf("codec %d: %v, %v", codec, err, faults)
			}
		}
	}
}

// TestSizesAroundTheBuffer: whatever is collected and whatever is passed on by itself, the order in the file is that of
// the table. All pairs of sizes follow one another.
func TestSizesAroundTheBuffer(t *testing.T) {
	t.Parallel()
	sizes := []int{1, bufferLen / 3, bufferLen/2 - 100, bufferLen/2 + 100, bufferLen - 100, bufferLen + 100, 2*bufferLen + 1}
	source := rand.NewChaCha8([32]byte{})
	var blobs [][]byte
	add := func(n int) {
		blob := make([]byte, n)
		_, _ = source.Read(blob)
		blobs = append(blobs, blob)
	}
	for i, a := range sizes { // each size before each other one and before itself, once: a de Bruijn sequence
		add(a)
		for _, b := range sizes[i+1:] {
			add(a)
			add(b)
		}
	}
	add(sizes[0])
	d := newDir(t)
	keys := store(t, open(t, d), Raw, blobs...)
	s := open(t, d)
	if faults, err := s.Check(t.Context(), 2, nil); err != nil || len(faults) > 0 {
		t.Errorf("%v, %v", err, faults)
	}
	for i, k := range keys {
		if got, err := s.Get(k); err != nil || !bytes.Equal(got, blobs[i]) {
			t.Errorf("blob %d of %d bytes: %v", i, len(blobs[i]), err)
		}
	}
}

func TestTypesAreApart(t *testing.T) {
	t.Parallel()
	s := open(t, newDir(t))
	k := store(t, s, S2, []byte("rbT1"))[0]
	k.Type = object.Tree
	if _, err := s.Get(k); s.Has(k) || !errors.Is(err, ErrMissing) || !errors.Is(err, ErrDamaged) {
		t.Errorf("the bytes of a file pass as a directory: %v", err)
	}
}

func TestNothingNewMakesNoFile(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	s := open(t, d)
	store(t, s, S2, []byte("a"), []byte("a"), []byte("b"))
	store(t, s, S2, []byte("b"), []byte("a"))
	store(t, s, S2)
	if n := len(names(t, d, Dir)); n != 1 {
		t.Errorf("%d packs", n)
	}
	if left := names(t, d, "tmp"); len(left) > 0 {
		t.Errorf("left in tmp: %q", left)
	}
	u := s.Usage(nil)
	if len(u) != 1 || u[0].Objects != 2 {
		t.Errorf("%+v", u)
	}
}

func names(t testing.TB, d *files.Dir, dir string) (list []string) {
	t.Helper()
	entries, err := fs.ReadDir(d.FS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, filepath.Join(d.Name(), dir, e.Name()))
	}
	return list
}

func TestAbort(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	s := open(t, d)
	w := s.NewWriter("tmp", Raw)
	k, err := w.Add(object.Blob, make([]byte, 2*bufferLen))
	if err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if s.Has(k) || len(names(t, d, Dir)) > 0 || len(names(t, d, "tmp")) > 0 {
		t.Error("something is left of an aborted pack")
	}
	if _, err := w.Add(object.Blob, nil); err == nil {
		t.Error("a dropped writer takes objects")
	}
	if _, err := w.Seal(t.Context()); err == nil {
		t.Error("a dropped writer seals")
	}
}

func TestCancelledSeal(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	w := open(t, d).NewWriter("tmp", Raw)
	if _, err := w.Add(object.Blob, []byte("x")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Seal(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if len(names(t, d, Dir)) > 0 {
		t.Error("a pack was sealed")
	}
}

// TestWritersTogether: many goroutines, the same bytes among them, in two writers of one set.
func TestWritersTogether(t *testing.T) {
	t.Parallel()
	s := open(t, newDir(t))
	var wg sync.WaitGroup
	for range 2 {
		w := s.NewWriter("tmp", S2)
		var adds sync.WaitGroup
		for g := range 4 {
			adds.Go(func() {
				for i := range 200 {
					if _, err := w.Add(object.Blob, fmt.Appendf(nil, "blob %d", i/(1+g%2))); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Go(func() {
			adds.Wait()
			if _, err := w.Seal(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range 200 {
		if _, err := s.Get(object.Sum(object.Blob, fmt.Appendf(nil, "blob %d", i))); err != nil {
			t.Error(err)
		}
	}
	for _, u := range s.Usage(nil) { // the second has only what the first had not sealed yet
		if u.Objects > 200 {
			t.Errorf("%d objects in %s, of 200 that there are", u.Objects, u.Pack)
		}
	}
}

// TestTwoSets: what one process seals the other sees after Refresh, and what is gone it forgets.
func TestTwoSets(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	a, b := open(t, d), open(t, d)
	k := store(t, a, S2, []byte("x"))[0]
	if b.Has(k) {
		t.Error("seen without Refresh: this test proves nothing")
	}
	refresh(t, b)
	if _, err := b.Get(k); err != nil || !b.Has(k) {
		t.Error(err)
	}
	if err := a.Remove(a.Usage(nil)); err != nil {
		t.Fatal(err)
	}
	refresh(t, b)
	if a.Has(k) || b.Has(k) {
		t.Error("a removed pack still vouches")
	}
	refresh(t, a)
	store(t, b, S2, []byte("x"))
	refresh(t, a)
	if !a.Has(k) {
		t.Error("stored again, and not seen")
	}
}

func refresh(t testing.TB, s *Set) {
	t.Helper()
	if err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
}

func TestManyPacksFewDescriptors(t *testing.T) {
	t.Parallel()
	s := open(t, newDir(t))
	var keys []object.Key
	for i := range 3 * maxOpen {
		keys = append(keys, store(t, s, Raw, fmt.Appendf(nil, "%d", i))...)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, k := range keys {
				if _, err := s.Get(k); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(s.handles.open); n > maxOpen+4 {
		t.Errorf("%d packs are open", n)
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	w := open(t, newDir(t)).NewWriter("tmp", Raw)
	defer w.Abort()
	if _, err := w.Add(object.Blob, make([]byte, object.MaxBlob+1)); err == nil {
		t.Error("a blob above the limit is stored")
	}
	if _, err := w.Add(9, []byte("x")); err == nil {
		t.Error("an unknown type is stored")
	}
}

// TestFaultsOfTheDisk: whichever operation fails, Seal fails, nothing has a name, and nothing is left in tmp.
func TestFaultsOfTheDisk(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, op := range []string{"create", "write", "sync", "rename"} {
		d := newDir(t)
		s := open(t, d)
		d.Fail = func(o, _ string) error {
			if o == op {
				return broken
			}
			return nil
		}
		w := s.NewWriter("tmp", Raw)
		k, addErr := w.Add(object.Blob, []byte("x"))
		if _, err := w.Seal(t.Context()); !errors.Is(errors.Join(err, addErr), broken) {
			t.Errorf("%s: %v", op, err)
		}
		if s.Has(k) || len(names(t, d, Dir)) > 0 || len(names(t, d, "tmp")) > 0 {
			t.Errorf("%s: something is left", op)
		}
	}
}

// TestFailedWriteStays: after a failed write the writer seals nothing, even if later ones work.
func TestFailedWriteStays(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	w := open(t, d).NewWriter("tmp", Raw)
	fail := true
	d.Fail = func(op, _ string) error {
		if op == "write" && fail {
			return fs.ErrPermission
		}
		return nil
	}
	_, err := w.Add(object.Blob, make([]byte, bufferLen))
	fail = false
	_, again := w.Add(object.Blob, []byte("y"))
	_, sealed := w.Seal(t.Context())
	for _, err := range []error{err, again, sealed} {
		if !errors.Is(err, fs.ErrPermission) {
			t.Error(err)
		}
	}
}
