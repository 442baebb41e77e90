// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"hash/crc32"
	"os"
	"testing"
	"time"

	"github.com/evoseal/containment/internal/testenv"
	"github.com/evoseal/containment/rollback/internal/object"
)

// cachedTree returns a tree and a cache that vouches for all of it.
func cachedTree(t testing.TB) (root string, fd int, o Options, data []byte) {
	t.Helper()
	root = t.TempDir()
	put(t, root, "a", "b/c", "b/d/e", "b/d/f")
	must(t, os.Symlink("a", root+"/link"))
	must(t, os.Link(root+"/a", root+"/b/same"))
	fd = openDir(t, root)
	o = Options{Limits: roomy, clock: &fakeClock{stamps: []stamp{ago(-time.Hour)}, t: timing{ctime: true, inode: true}}}
	data, whole := mustScan(t, fd, o).CacheFile()
	if !whole {
		t.Fatal("no cache")
	}
	o.Cache = ParseCache(data)
	if r := mustScan(t, fd, o); r.Read != 0 {
		t.Fatalf("%d files were read", r.Read)
	}
	return root, fd, o, data
}

// TestDamagedCache: whatever bit of a cache is wrong, nothing wrong is believed.
func TestDamagedCache(t *testing.T) {
	t.Parallel()
	_, _, _, data := cachedTree(t)
	for i := range data {
		for bit := range 8 {
			bad := append([]byte(nil), data...)
			bad[i] ^= 1 << bit
			if ParseCache(bad) != nil {
				t.Fatalf("bit %d of byte %d is believed", bit, i)
			}
		}
		if ParseCache(data[:i]) != nil {
			t.Fatalf("%d of %d bytes are believed", i, len(data))
		}
	}
}

// TestOptionsBindTheCache: a cache for other options, or of another directory, is none.
func TestOptionsBindTheCache(t *testing.T) {
	t.Parallel()
	root, fd, o, _ := cachedTree(t)
	other, err := NewMatcher([]string{"nothing"})
	must(t, err)
	for name, change := range map[string]func(*Options){
		"exclude": func(o *Options) { o.Exclude = other }, "owner": func(o *Options) { o.Owner = true },
		"xattrs": func(o *Options) { o.Xattrs = true },
	} {
		changed := o
		change(&changed)
		if r := mustScan(t, fd, changed); r.Read != r.Files {
			t.Errorf("%s: only %d of %d files were read", name, r.Read, r.Files)
		}
	}
	if r := mustScan(t, openDir(t, root+"/b"), o); r.Read != r.Files {
		t.Error("a cache is believed for another directory")
	}
}

// lossy is a sink with a generation, whatever it has. Generation 0 is none.
type lossy struct {
	*memory
	generation byte
}

func (l *lossy) Generation() (object.Hash, bool) { return object.Hash{l.generation}, l.generation != 0 }

// TestGeneration: a sink of the same generation is not asked again; one of another is, and what it lost is read again.
func TestGeneration(t *testing.T) {
	t.Parallel()
	_, fd, o, _ := cachedTree(t)
	o.Cache = nil
	sink := &lossy{newMemory(), 1}
	o.Sink = sink
	data, _ := mustScan(t, fd, o).CacheFile()
	o.Cache = ParseCache(data)
	clear(sink.keys)
	if r := mustScan(t, fd, o); r.Read != 0 {
		t.Errorf("same generation: %d files were read", r.Read)
	}
	for sink.generation = range byte(3) {
		if sink.generation == 1 {
			continue
		}
		clear(sink.keys)
		for path, e := range entries(mustScan(t, fd, o).Root) {
			if e.Kind != object.Link && !sink.keys[e.Data] {
				t.Errorf("generation %d: %q is not there", sink.generation, path)
			}
		}
	}
}

// TestLostSinceTheCache: what the cache knows and can be read no more is not in the sums.
func TestLostSinceTheCache(t *testing.T) {
	testenv.Need(t, "unprivileged")
	t.Parallel()
	root, fd, o, _ := cachedTree(t)
	before := mustScan(t, fd, o)
	must(t, os.Chmod(root+"/b/d", 0))
	t.Cleanup(func() { _ = os.Chmod(root+"/b/d", 0o755) })
	o.Tolerate = true
	r := mustScan(t, fd, o)
	if r.Root.Child("b").Child("d") != nil || r.Content() == before.Content() || len(r.Foreign) != 1 {
		t.Errorf("content %v as before, foreign %v", r.Content() == before.Content(), r.Foreign)
	}
	data, _ := r.CacheFile()
	must(t, os.Chmod(root+"/b/d", 0o755))
	o.Cache = ParseCache(data)
	equalsReference(t, root, mustScan(t, fd, o), o)
}

// FuzzCache gives the scan caches with right sums and wrong contents. It must not panic, and where the stats in the
// cache were not forged it must find what the plain walk finds.
func FuzzCache(f *testing.F) {
	f.Add(uint32(0), byte(1), uint32(0))
	f.Add(uint32(headerLen+rHash), byte(7), uint32(9))
	f.Add(uint32(headerLen+rName), byte(255), uint32(300))
	f.Add(uint32(headerLen+rTarget), byte(1), uint32(2))
	f.Fuzz(func(t *testing.T, at uint32, flip byte, cut uint32) {
		root, fd, o, data := cachedTree(t)
		body := len(data) - headerLen
		data = data[:len(data)-int(cut)%body]
		data[headerLen+int(at)%(len(data)-headerLen)] ^= flip
		le.PutUint64(data[hBody:], uint64(len(data)-headerLen))
		le.PutUint32(data[hBodySum:], crc32.Checksum(data[headerLen:], castagnoli))
		le.PutUint32(data[hSum:], crc32.Checksum(data[:hSum], castagnoli))
		o.Cache = ParseCache(data)
		mustScan(t, fd, o) // a forged sum can lie about hashes, and must do no other harm
		o.clock.(*fakeClock).stamps = []stamp{ago(-time.Minute)}
		equalsReference(t, root, mustScan(t, fd, o), o) // the time went backwards: nothing of it counts
	})
}

// FuzzParseCache: random bytes are no cache.
func FuzzParseCache(f *testing.F) {
	_, _, _, data := cachedTree(f)
	f.Add(data[:headerLen+recordLen])
	f.Fuzz(func(t *testing.T, data []byte) {
		if c := ParseCache(data); c != nil && len(data) < headerLen+recordLen {
			t.Error("too short to be one")
		}
	})
}
