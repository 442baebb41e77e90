// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var propertyRuns = flag.Int("scan.runs", 8, "how many random trees are compared with the plain walk")

// TestRandomTrees mutates random trees and scans them with the cache of the time before, as a store does: the result
// must always be what the plain walk finds, whatever the cache knows.
func TestRandomTrees(t *testing.T) {
	t.Parallel()
	for i := range *propertyRuns {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(uint64(i), 7))
			root := t.TempDir()
			fd := openDir(t, root)
			g := &grower{t: t, rng: rng, root: root, xattrs: i%3 == 0}
			sink := newMemory()
			exclude, err := NewMatcher([]string{"skipped", "*.pyc", "a/b", "**/deep/*.x"})
			if err != nil {
				t.Fatal(err)
			}
			o := Options{
				Sink: sink, Exclude: exclude, Limits: roomy, Xattrs: g.xattrs, SkipSpecial: true, Workers: 1 + i%4,
				Scrub: i % 3 * 4,
			}
			var prev *Result
			for range 8 {
				for range 1 + rng.IntN(40) {
					g.mutate()
				}
				if rng.IntN(2) == 0 {
					time.Sleep(15 * time.Millisecond) // past the slack
				}
				r := mustScan(t, fd, o)
				equalsReference(t, root, r, o)
				if data, whole := r.CacheFile(); whole {
					o.Cache = ParseCache(data)
				} else if data != nil {
					copy(o.Cache.data, data)
					o.Cache = ParseCache(o.Cache.data)
				}
				if o.Cache == nil {
					t.Fatal("the cache that was just written is none")
				}
				for _, e := range entries(r.Root) {
					if e.Data.Type != 0 && !sink.keys[e.Data] {
						t.Fatalf("%q names an object that was not stored", e.Name)
					}
				}
				if rng.IntN(4) == 0 && len(sink.keys) > 0 { // the store loses something
					for k := range sink.keys {
						delete(sink.keys, k)
						break
					}
				}
				prev = r
			}
			r, err := Rescan(t.Context(), fd, prev, func(path string) bool { return path == "." || path == "a" }, o)
			if err != nil {
				t.Fatal(err)
			}
			equalsReference(t, root, r, o)
		})
	}
}

// grower changes a tree at random.
type grower struct {
	t      *testing.T
	rng    *rand.Rand
	root   string
	xattrs bool
}

var someNames = []string{
	"a", "b", "c", "deep", "x.x", "skipped", "m.pyc", ".git", ".GIT", "gone\nline", "bad\xff\xfe", "-rf", ".env",
	"node_modules", ".rollback-1", "é", "A", ".gitignore",
}

// at returns a random path, which may exist or not.
func (g *grower) at() string {
	p := g.root
	for range 1 + g.rng.IntN(4) {
		p += "/" + someNames[g.rng.IntN(len(someNames))]
		if info, err := os.Lstat(p); err != nil || !info.IsDir() {
			break
		}
	}
	return p
}

// mutate does one thing; that it cannot be done is as good.
func (g *grower) mutate() {
	p := g.at()
	info, err := os.Lstat(p)
	if err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		_ = os.Remove(p) // opening it would block
		return
	}
	switch g.rng.IntN(12) {
	case 0, 1, 2:
		if err == nil && info.Mode()&os.ModeSymlink != 0 {
			_ = os.Remove(p) // not through it
		}
		_ = os.WriteFile(p, g.bytes(), 0o644)
	case 3:
		_ = os.Mkdir(p, 0o755)
	case 4:
		_ = os.Symlink([]string{"a", "/etc/passwd", "..", "nowhere", "b/../c"}[g.rng.IntN(5)], p)
	case 5:
		_ = os.Link(g.at(), p)
	case 6:
		_ = os.Remove(p)
	case 7:
		_ = os.Rename(g.at(), p)
	case 8:
		if err == nil && info.Mode()&os.ModeSymlink == 0 {
			_ = os.Chmod(p, info.Mode().Perm()^0o044)
		}
	case 9:
		ts := unix.NsecToTimespec(g.rng.Int64N(1<<62) - 1<<60)
		_ = unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
	case 10:
		if g.xattrs {
			_ = unix.Lsetxattr(p, "user."+filepath.Base(someNames[g.rng.IntN(3)]), g.bytes()[:1], 0)
		} else {
			_ = unix.Mkfifo(p, 0o600)
		}
	case 11: // the same size at the same time
		g.rewrite(p)
	}
}

func (g *grower) rewrite(p string) {
	info, err := os.Lstat(p)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	data, _ := os.ReadFile(p)
	slices.Reverse(data)
	_ = os.WriteFile(p, data, 0o600)
	_ = os.Chtimes(p, info.ModTime(), info.ModTime())
}

func (g *grower) bytes() []byte {
	b := make([]byte, 1+g.rng.IntN(300))
	for i := range b {
		b[i] = byte(g.rng.IntN(3))
	}
	return b
}
