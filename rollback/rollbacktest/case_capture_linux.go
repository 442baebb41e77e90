// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// captureCases are about what a checkpoint holds.
func captureCases() []Case {
	return []Case{
		newCase("C1", "empty", 0, "empty files, empty directories or an empty tree do not come back", captureEmpty),
		newCase("C2", "everything", 0, "a list of files, an ignore file or a reserved name decides what is captured",
			captureAll),
		newCase("C2b", "excluded", 0, "a restore takes back or deletes what no checkpoint holds", captureExcluded),
		newCase("C3", "links", 0, "links are followed, resolved or dropped", captureLinks),
		newCase("C4", "names", 0, "a name is taken for text, an option or two names", captureNames),
		newCase("C5", "times", 0, "modification times are rounded, clamped or those of the restore", captureTimes),
		newCase("C12", "sparse", 0, "a file of holes takes the space and time of its length", captureSparse),
		newCase("C14", "sizes", 0, "what is too large for some buffer, or just fits, is lost or mixed up", captureSizes),
	}
}

// captureSizes mixes small files with files of each order of magnitude, and one byte to each side of a power of two: where
// stores collect, split and pass on. The contents cannot be compressed, and no two are alike.
func captureSizes(s *scene) {
	sizes := []int{0, 1, 9, 100, 1<<21 + 1, 1<<22 + 1, 16<<20 + 1}
	for bits := 10; bits <= 20; bits++ {
		sizes = append(sizes, 1<<bits-1, 1<<bits, 1<<bits+1, 1<<bits+1<<(bits-1))
	}
	source := rand.NewChaCha8([32]byte{77})
	for i, n := range sizes {
		data := make([]byte, n)
		_, _ = source.Read(data) // it cannot fail
		s.file(fmt.Sprintf("%d/%02d", i%7, i), string(data))
	}
	r := s.back(func() { s.remove("0", "1", "2", "3", "4", "5", "6") })
	s.want(len(r.Changes) > len(sizes), "%d changes, want more than %d", len(r.Changes), len(sizes))
}

func captureEmpty(s *scene) {
	s.back(func() { s.file("a", "x").mkdir("d/e").link("l", "a") })
	s.file("empty", "").mkdir("d/e/f").mkdir("g").file("h/empty", "")
	s.back(func() { s.remove("empty", "d", "g", "h") })
	s.back(func() { s.file("empty", "not now").file("d/e/f/x", "not now") })
}

func captureAll(s *scene) {
	s.opt.Exclude = []string{} // nothing, not even caches
	s.file(".gitignore", "*\n!keep\n").file(".git-like", "a").file("ignored.o", "object").file(".env", "KEY=1")
	s.file("node_modules/p/index.js", "p").file("__pycache__/m.pyc", "m").file(".hidden/.deeper/x", "x")
	s.file("metadata.json", "{}").file("manifest", "m").file("src/metadata.json", "{}").file("data.db-wal", "w")
	s.file("core", "c").file("backup~", "b").file(".rollbackrc", "r").file("format.json", "{}").file("lock", "")
	s.back(func() {
		s.file(".gitignore", "").file("ignored.o", "evil").remove(".env", "node_modules", "__pycache__", ".hidden")
		s.file("src/metadata.json", "[]").remove("metadata.json", "data.db-wal", "backup~", ".rollbackrc", "format.json")
	})
}

// captureExcluded: what is excluded is neither read nor changed, and the checkpoint's list counts, not today's.
func captureExcluded(s *scene) {
	s.opt.Exclude = []string{"cache", "out/*.tmp"}
	s.file("a", "old").file("cache/c", "old").file("out/x.tmp", "old").file("out/y", "old").file("deep/cache/d", "old")
	sub := s.subject()
	c := s.checkpoint(sub)
	s.file("a", "new").file("cache/c", "mine").file("out/x.tmp", "mine").file("out/y", "new").file("deep/cache/d", "mine")
	s.file("cache/more", "mine").file("out/z.tmp", "mine")
	before := s.look()
	s.opt.Exclude = []string{"a", "out"}
	for _, sub := range []Subject{sub, s.subject()} {
		s.restore(sub, c.ID)
		after := s.look()
		for _, path := range []string{"cache", "out/x.tmp", "out/z.tmp", "deep/cache"} {
			s.untouched("what is excluded", before.Under(path), after.Under(path))
		}
		for _, path := range []string{"a", "out/y"} {
			data, err := os.ReadFile(s.path(path))
			s.want(err == nil && string(data) == "old", "%s holds %q (%v), want what the checkpoint has", path, data, err)
		}
		s.file("a", "new again")
	}
}

func captureLinks(s *scene) {
	s.must(os.WriteFile(s.outside("secret"), []byte("outside"), 0o600), os.Mkdir(s.outside("dir"), 0o755))
	s.file("f", "f").file("d/g", "g").link("rel", "f").link("abs", s.outside("secret")).link("dangling", "no/where")
	s.link("d/up", "..").link("d/upup", "../../outside").link("self", "self").link("dir", "d").link("out",
		s.outside("dir"))
	s.link("odd", "a//b/./../c/").link("d/chain", "../rel").stamp("rel", 77, 7)
	outside := s.lookAt(s.outside(""))
	s.back(func() {
		s.remove("rel", "abs", "dangling", "d/up", "self", "dir", "out", "d/chain", "odd")
		s.link("rel", "d/g").link("abs", "f").file("dangling", "a file").mkdir("d/up").link("dir", "elsewhere").link("odd",
			"c")
	})
	s.untouched("what links point to", outside, s.lookAt(s.outside("")))
}

func captureNames(s *scene) {
	long := strings.Repeat("n", 255)
	for _, name := range []string{"new\nline", "\xff\xfe invalid", long, "-rf", "--", "'quote\"", "back\\slash", " ", "\t",
		"a:b", "*", "?", "$HOME", "e\u0301", "\u00e9", "CON", "trailing.", "\x01\x7f", "...", "..a", "x\r"} {
		s.file("names/"+name, "file "+name).file("dirs/"+name+"/in", "in")
	}
	s.link("dirs/link", "\xff\n-target")
	s.back(func() { s.remove("names").file("dirs/-rf/in", "changed").remove("dirs/"+long, "dirs/new\nline") })
}

func captureTimes(s *scene) {
	for i, sec := range []int64{-1, -1_000_000_000, 0, 1, 1_700_000_000, 1<<31 - 1, 1 << 31, 4_102_444_800} {
		file, dir, link := fmt.Sprint("f", i), fmt.Sprint("d", i), fmt.Sprint("l", i)
		s.file(file, file).file(dir+"/x", "x").link(link, file)
		s.stamp(file, sec, 999_999_999).stamp(dir+"/x", sec, 1).stamp(dir, sec, 123_456_789).stamp(link, sec, 500)
	}
	s.stamp(".", 1_234_567_890, 42)
	s.back(func() {
		for i := range 8 {
			s.file(fmt.Sprint("f", i), "other").file(fmt.Sprintf("d%d/y", i), "y").remove(fmt.Sprint("l", i))
		}
		s.stamp("d1/x", 9, 9)
	})
}

func captureSparse(s *scene) {
	const size, most = 1 << 40, 64 << 20
	s.opt.Limits.FileSize, s.opt.Limits.Bytes = 2*size, 4*size
	s.file("f", "small").file("sparse", "begin")
	f, err := os.OpenFile(s.path("sparse"), os.O_RDWR, 0)
	s.must(err)
	defer f.Close()
	_, err = f.WriteAt([]byte("middle"), size/2)
	s.must(err, f.Truncate(size))
	sub := s.subject()
	c := s.checkpoint(sub)
	s.must(f.Truncate(10))
	s.restore(sub, c.ID)
	var st unix.Stat_t
	s.must(unix.Lstat(s.path("sparse"), &st))
	s.want(st.Size == size, "the file is %d bytes long, want %d", st.Size, int64(size))
	s.want(st.Blocks*512 < most, "the file takes %d bytes on disk", st.Blocks*512)
	s.want(s.used() < most, "the store takes %d bytes", s.used())
	g, err := os.Open(s.path("sparse"))
	s.must(err)
	defer g.Close()
	for offset, want := range map[int64]string{0: "begin", size / 2: "middle", size - 6: strings.Repeat("\x00", 6)} {
		got := make([]byte, len(want))
		_, err := g.ReadAt(got, offset)
		s.must(err)
		s.want(string(got) == want, "at %d stands %q, want %q", offset, got, want)
	}
}
