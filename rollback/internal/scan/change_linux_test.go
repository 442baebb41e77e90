// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback/internal/object"
)

// fakeClock is a file system whose time a test sets. Its files keep the times of the real one.
type fakeClock struct {
	stamps []stamp // one for each call, the last one for all further
	t      timing
}

func (c *fakeClock) timing(int) timing { return c.t }
func (c *fakeClock) now(int) (stamp, bool) {
	s := c.stamps[0]
	if len(c.stamps) > 1 {
		c.stamps = c.stamps[1:]
	}
	return s, s != stamp{} // the zero stamp: no clock
}

func stampOf(t time.Time) stamp { return stamp{t.Unix(), uint32(t.Nanosecond())} }

func ago(d time.Duration) stamp { return stampOf(time.Now().Add(-d)) }

// TestWhatACacheVouchesFor: which clock lets the second scan leave a file alone that was written just before the first.
func TestWhatACacheVouchesFor(t *testing.T) {
	t.Parallel()
	local, coarse := timing{10 * time.Millisecond, true, true, true}, unknown
	const none = time.Duration(1) << 62 // there is no clock
	sec := time.Second
	for _, c := range []struct {
		name          string
		timing        timing
		start, end    time.Duration // of the first scan, after the file was written
		second, mtime time.Duration // of the second scan; of the file
		read          int
	}{
		{"old file", local, sec, sec, 2 * sec, 0, 0},
		{"racy file", local, 0, 0, sec, 0, 1},
		{"within two seconds", coarse, sec, sec, 9 * sec, 0, 1},
		{"after two seconds", coarse, 3 * sec, 3 * sec, 9 * sec, 0, 0},
		{"mtime in the future, coarse", coarse, 3 * sec, 3 * sec, 9 * sec, time.Hour, 1},
		{"mtime in the future, local", local, 3 * sec, 3 * sec, 9 * sec, time.Hour, 0},
		{"clock set back between", local, time.Hour, time.Hour, time.Minute, 0, 1},
		{"clock set back during", local, time.Hour, time.Minute, 2 * time.Hour, 0, 1},
		{"no clock at first", local, none, none, time.Hour, 0, 1},
		{"no clock at last", local, time.Hour, none, 2 * time.Hour, 0, 1},
		{"no clock then", local, time.Hour, time.Hour, none, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			put(t, root, "f")
			written := time.Now()
			if c.mtime != 0 {
				at := written.Add(c.mtime)
				must(t, os.Chtimes(root+"/f", at, at))
			}
			at := func(d time.Duration) stamp {
				if d == none {
					return stamp{}
				}
				return stampOf(written.Add(d))
			}
			fd := openDir(t, root)
			first := &fakeClock{stamps: []stamp{at(c.start), at(c.end)}, t: c.timing}
			data, _ := mustScan(t, fd, Options{clock: first}).CacheFile()
			second := &fakeClock{stamps: []stamp{at(c.second)}, t: c.timing}
			r := mustScan(t, fd, Options{clock: second, Cache: ParseCache(data)})
			if r.Read != c.read {
				t.Errorf("read %d files, want %d", r.Read, c.read)
			}
		})
	}
}

// TestSameSizeInOneTick writes other bytes of the same length and puts the mtime back, right after a scan.
func TestSameSizeInOneTick(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	fd := openDir(t, root)
	o := Options{Sink: newMemory()}
	for i := range 50 {
		text := []byte{byte('a' + i%2), 'x'}
		must(t, os.WriteFile(root+"/f", text, 0o644))
		must(t, os.Chtimes(root+"/f", time.Unix(1, 0), time.Unix(1, 0)))
		r := mustScan(t, fd, o)
		if r.Root.Child("f").Data != object.Sum(object.Blob, text) {
			t.Fatalf("round %d: the old bytes", i)
		}
		data, _ := r.CacheFile()
		o.Cache = ParseCache(data)
	}
}

// TestScrub: every file is read again once in a while, though nothing says that it changed, and each in its turn.
func TestScrub(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for i := range 64 {
		put(t, root, string(rune('A'+i)))
	}
	fd := openDir(t, root)
	o := Options{Scrub: 8, clock: &fakeClock{stamps: []stamp{ago(-time.Hour)}, t: timing{ctime: true}}}
	data, _ := mustScan(t, fd, o).CacheFile()
	total := 0
	for range 8 {
		o.Cache = ParseCache(data)
		r := mustScan(t, fd, o)
		header, whole := r.CacheFile()
		if whole || r.Read != r.Scrubbed || r.Read == 64 {
			t.Fatalf("whole %v, read %d, scrubbed %d", whole, r.Read, r.Scrubbed)
		}
		copy(data, header)
		total += r.Scrubbed
	}
	if total != 64 {
		t.Errorf("eight turns read %d files of 64", total)
	}
	// What the cache says of a file is wrong, and only reading it can tell.
	o.Scrub, o.Cache = 1, ParseCache(data)
	rec := o.Cache.record(headerLen)
	cur := o.Cache.open(rec)
	lie, _ := cur.find("B")
	lie[rHash] ^= 1
	r := mustScan(t, fd, o)
	if len(r.Drifted) != 1 || r.Drifted[0] != "B" {
		t.Errorf("drifted: %q", r.Drifted)
	}
	equalsReference(t, root, r, o)
}

// TestRewrittenWhileRead: what is captured is what the file was at one moment, and never a mixture.
func TestRewrittenWhileRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	fd := openDir(t, root)
	texts := [][]byte{bytes.Repeat([]byte("a"), 900_000), bytes.Repeat([]byte("b"), 800_000)}
	must(t, os.WriteFile(root+"/f", texts[0], 0o644))
	done := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			f, err := os.OpenFile(root+"/f", os.O_WRONLY|os.O_TRUNC, 0)
			if err != nil {
				t.Error(err)
				return
			}
			for text := texts[i%2]; len(text) > 0; text = text[100_000:] {
				_, _ = f.Write(text[:100_000])
			}
			_ = f.Close()
			time.Sleep(time.Duration(i%4) * time.Millisecond)
		}
	})
	whole := map[object.Key]bool{object.Sum(object.Blob, texts[0]): true, object.Sum(object.Blob, texts[1]): true}
	good, refused := 0, 0
	for range 10 * *propertyRuns {
		r, err := Scan(t.Context(), fd, Options{Limits: roomy})
		if err != nil {
			if _, ok := errors.AsType[*UnstableError](err); !ok {
				t.Fatal(err)
			}
			refused++
			continue
		}
		if good++; !whole[r.Root.Child("f").Data] && !partial(r.Root.Child("f")) {
			t.Fatalf("torn: %d bytes", r.Root.Child("f").Size)
		}
	}
	close(done)
	writer.Wait()
	t.Logf("%d captured, %d refused", good, refused)
}

// partial reports whether the writer was not done, and the file was captured as it was then: the beginning of one text.
func partial(n *Node) bool {
	for _, c := range []string{"a", "b"} {
		if n.Data == object.Sum(object.Blob, bytes.Repeat([]byte(c), int(n.Size))) {
			return true
		}
	}
	return false
}

// TestSwappedForALink: a directory is exchanged with a link that leads out of the tree, over and over. What is outside
// must never be seen.
func TestSwappedForALink(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	root, outside := base+"/tree", base+"/outside"
	put(t, base, "tree/a/d/canary", "tree/a/d/e/canary", "tree/b", "outside/canary", "outside/e/canary", "outside/secret")
	must(t, os.WriteFile(outside+"/canary", []byte("secret"), 0o644))
	must(t, os.WriteFile(outside+"/e/canary", []byte("secret"), 0o644))
	must(t, os.Symlink(outside, root+"/a/link"))
	must(t, os.Symlink(outside+"/canary", root+"/a/d/file-link"))
	fd := openDir(t, root)
	done := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, root+"/a/d", unix.AT_FDCWD, root+"/a/link", unix.RENAME_EXCHANGE)
				_ = unix.Renameat2(unix.AT_FDCWD, root+"/a/d/canary", unix.AT_FDCWD, root+"/a/d/file-link", unix.RENAME_EXCHANGE)
			}
		}
	})
	secret := object.Sum(object.Blob, []byte("secret"))
	good := 0
	for range 15 * *propertyRuns {
		sink := newMemory()
		r, err := Scan(t.Context(), fd, Options{Limits: roomy, Sink: sink})
		if _, unstable := errors.AsType[*UnstableError](err); err != nil && !unstable {
			t.Fatal(err)
		}
		if sink.keys[secret] {
			t.Fatal("something outside the tree was read")
		}
		if err == nil {
			good++
			if entries(r.Root)["a/secret"].Name != "" {
				t.Fatal("a name from outside the tree")
			}
		}
	}
	close(done)
	swapper.Wait()
	t.Logf("%d scans saw a tree at rest", good)
}

// TestDescriptors: a wide and deep tree is scanned with a handful of descriptors.
func TestDescriptors(t *testing.T) {
	root := t.TempDir()
	for i := range 20 {
		put(t, root, filepath.Join("w", string(rune('A'+i)), "a/b/c/d/e/f/g/h/f"))
	}
	fd := openDir(t, root)
	most := 0
	var mu sync.Mutex
	sink := &hookSink{memory: newMemory(), hook: func() {
		open, err := os.ReadDir("/proc/self/fd")
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			most = max(most, len(open))
		}
	}}
	before, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	mustScan(t, fd, Options{Sink: sink, Workers: 4})
	if more := most - len(before); more > 4*3+4 {
		t.Errorf("%d descriptors more than before, with 4 workers", more)
	}
}

// TestCacheAfterRescan: the cache of a rescan vouches for what either scan saw long enough after its last change.
func TestCacheAfterRescan(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, "racy/f", "old/f", "new/f")
	fd := openDir(t, root)
	local := timing{10 * time.Millisecond, true, true, true}
	for _, early := range []bool{false, true} {
		start := ago(-time.Minute)
		if early {
			start = ago(time.Hour) // all files are too young for the first scan to vouch for
		}
		first := mustScan(t, fd, Options{clock: &fakeClock{stamps: []stamp{start}, t: local}})
		must(t, os.WriteFile(root+"/new/f", []byte{byte(len(root))}, 0o644))
		o := Options{Limits: roomy, clock: &fakeClock{stamps: []stamp{ago(-time.Hour)}, t: local}}
		r, err := Rescan(t.Context(), fd, first, func(path string) bool { return path == "." || path == "new" }, o)
		must(t, err)
		equalsReference(t, root, r, o)
		data, _ := r.CacheFile()
		o.Cache, o.clock = ParseCache(data), &fakeClock{stamps: []stamp{ago(-2 * time.Hour)}, t: local}
		want := 0
		if early {
			want = 2
		}
		if again := mustScan(t, fd, o); again.Read != want {
			t.Errorf("early %v: %d files were read again, want %d", early, again.Read, want)
		}
	}
}

func TestHashFile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for i, size := range []int{0, 5, smallFile, object.MaxBlob, object.MaxBlob + 1} {
		p := filepath.Join(root, string(rune('a'+i)))
		must(t, os.WriteFile(p, bytes.Repeat([]byte("x"), size), 0o644))
		fd, err := unix.Open(p, unix.O_RDONLY, 0)
		must(t, err)
		key, n, err := HashFile(fd)
		unix.Close(fd)
		if err != nil || n != int64(size) || key != plainData(t, p) {
			t.Errorf("%d bytes: %v, %d, %v", size, key, n, err)
		}
	}
	if _, _, err := HashFile(openDir(t, root)); err == nil {
		t.Error("a directory has bytes")
	}
}
