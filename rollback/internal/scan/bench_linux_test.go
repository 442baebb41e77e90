// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/rollback/internal/object"
)

var (
	benchTree  = flag.String("scan.tree", "", "measure this tree instead of generated ones")
	benchScrub = flag.Int("scan.scrub", 256, "Options.Scrub")
)

// BenchmarkUnchanged compares a scan of a tree that has not changed with the least that can notice a change: a parallel
// walk that lists every directory and looks at every entry.
func BenchmarkUnchanged(b *testing.B) {
	for _, files := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			root := *benchTree
			if root == "" {
				root = makeTree(b, files)
			}
			unchanged(b, openDir(b, root))
		})
	}
}

func unchanged(b *testing.B, fd int) {
	o := Options{Limits: Limits{1e7, 1 << 50, 1 << 40, 512}, Sink: generations{newMemory()}, Scrub: *benchScrub}
	for range 2 { // the first cache is racy
		if data, whole := mustScan(b, fd, o).CacheFile(); whole {
			o.Cache = ParseCache(data)
		}
	}
	b.ReportAllocs()
	var bare, ours least
	for b.Loop() {
		bare.of(func() { bareWalk(fd, min(8, runtime.GOMAXPROCS(0))) })
		ours.of(func() {
			o.Cache = ParseCache(append([]byte(nil), o.Cache.data...)) // as if it came from a file
			r := mustScan(b, fd, o)
			header, whole := r.CacheFile()
			if whole || r.Read != r.Scrubbed {
				b.Fatal("the tree changed")
			}
			copy(o.Cache.data, header)
		})
	}
	b.ReportMetric(bare.wall.Seconds()*1e3, "bare-ms")
	b.ReportMetric(ours.wall.Seconds()*1e3, "scan-ms")
	b.ReportMetric(ours.wall.Seconds()/bare.wall.Seconds(), "wall-ratio")
	b.ReportMetric(ours.cpu.Seconds()/bare.cpu.Seconds(), "cpu-ratio")
}

// least keeps the shortest of several runs, which noise can only lengthen.
type least struct{ wall, cpu time.Duration }

func (l *least) of(f func()) {
	var before, after unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &before)
	start := time.Now()
	f()
	wall := time.Since(start)
	_ = unix.Getrusage(unix.RUSAGE_SELF, &after)
	cpu := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	if l.wall == 0 || wall < l.wall {
		l.wall = wall
	}
	if l.cpu == 0 || cpu < l.cpu {
		l.cpu = cpu
	}
}

func makeTree(b *testing.B, files int) string {
	b.Helper()
	root := b.TempDir()
	for i := range files {
		dir := filepath.Join(root, fmt.Sprintf("d%02d/package-%04d", i/1000, i/8))
		if i%8 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		name := filepath.Join(dir, fmt.Sprintf("some_file_%d.go", i))
		if err := os.WriteFile(name, fmt.Appendf(make([]byte, i%4000), "%d", i), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return root
}

// bareWalk lists and looks, with the cheapest calls there are.
func bareWalk(root, workers int) {
	var mu sync.Mutex
	wake := sync.NewCond(&mu)
	dirs, active := []string{"."}, 0
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			buf := make([]byte, 64<<10)
			for {
				mu.Lock()
				for len(dirs) == 0 && active > 0 {
					wake.Wait()
				}
				if len(dirs) == 0 {
					mu.Unlock()
					wake.Broadcast()
					return
				}
				dir := dirs[len(dirs)-1]
				dirs = dirs[:len(dirs)-1]
				active++
				mu.Unlock()
				below := bareDir(root, dir, buf)
				mu.Lock()
				dirs = append(dirs, below...)
				active--
				mu.Unlock()
				wake.Broadcast()
			}
		})
	}
	all.Wait()
}

func bareDir(root int, dir string, buf []byte) (below []string) {
	fd, err := unix.Openat(root, dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		panic(err)
	}
	defer unix.Close(fd)
	var st unix.Statx_t
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil {
			panic(err)
		}
		if n == 0 {
			return below
		}
		for rest := buf[:n]; len(rest) > 0; {
			var name []byte
			var typ byte
			name, typ, _, rest = fsys.ParseDirent(rest)
			if string(name) == "." || string(name) == ".." {
				continue
			}
			if err := lstat(fd, unsafe.SliceData(name), &st); err != nil {
				panic(err)
			}
			if typ == unix.DT_DIR {
				below = append(below, dir+"/"+string(name))
			}
		}
	}
}

// memory is a sink that keeps keys only.
type memory struct {
	mu   sync.RWMutex
	keys map[object.Key]bool
	fail error
}

func newMemory() *memory { return &memory{keys: map[object.Key]bool{}} }

func (m *memory) Has(k object.Key) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.keys[k]
}

func (m *memory) Add(t object.Type, raw []byte) (object.Key, error) {
	k := object.Sum(t, raw)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys[k] = true
	return k, m.fail
}

// generations is a sink that never loses anything.
type generations struct{ *memory }

func (generations) Generation() (object.Hash, bool) { return object.Hash{1}, true }
