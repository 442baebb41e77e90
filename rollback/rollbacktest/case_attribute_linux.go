// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback"
)

// attributeCases are about what an entry has beside its bytes.
func attributeCases() []Case {
	return []Case{
		newCase("R4", "permissions", 0, "a permission bit is lost, or the umask takes part", permissions),
		newCase("R4b", "read-only", 0, "a directory that its owner may not write stops the restore, or stays writable",
			readOnly),
		newCase("R4c", "root", 0, "the root's own mode and time are not restored, or its parent is touched", rootItself),
		newCase("H1", "hard-links", 0, "two names of a file come back as two files, or as one with a stranger", hardLinks),
		newCase("H2", "attributes-only", 0, "a change of mode, time or partners alone is missed", attributesOnly),
		newCase("H3", "xattrs", 0, "extended attributes do not come back though they were asked for", extended),
		newCase("H4", "mtime-touch", 0, "rewritten files get old times though new ones were asked for", touched),
	}
}

func permissions(s *scene) {
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	root := os.Getuid() == 0
	for mode := uint32(0); mode < 0o1000; mode += 3 { // every bit, and every pair of neighbours
		file, dir := fmt.Sprintf("f/%03o", mode), fmt.Sprintf("d/%03o", mode)
		if root || mode&0o400 != 0 {
			s.file(file, file).chmod(file, mode)
		}
		if root || mode&0o500 == 0o500 {
			s.mkdir(dir).chmod(dir, mode)
		}
	}
	s.file("t/x", "x").chmod("t", 0o1777)
	s.back(func() { s.remove("d", "t").chmod("f", 0o700) })
	s.back(func() {
		s.remove("f").mkdir("f")
		for mode := uint32(0); mode < 0o1000; mode += 21 {
			if root || mode&0o500 == 0o500 {
				s.chmod(fmt.Sprintf("d/%03o", mode), 0o755)
			}
		}
	})
}

func readOnly(s *scene) {
	s.file("ro/deep/f", "f").file("ro/g", "g").link("ro/l", "g").chmod("ro/deep/f", 0o444).chmod("ro/deep",
		0o555).chmod("ro", 0o555)
	s.back(func() {
		s.chmod("ro", 0o755).chmod("ro/deep", 0o755).chmod("ro/deep/f", 0o644).file("ro/deep/f", "bad").file("ro/deep/new",
			"bad")
		s.remove("ro/g").file("bad/x/y", "bad").chmod("bad/x/y", 0o400).chmod("bad/x", 0o555).chmod("bad",
			0o555).chmod("ro/deep", 0o555)
	})
	s.back(func() { s.remove("ro") })
}

func rootItself(s *scene) {
	s.file("f", "f").chmod(".", 0o750).stamp(".", 1_111_111_111, 1)
	parent := s.lookAt(s.dir)["."]
	s.back(func() { s.file("g", "g").chmod(".", 0o700).stamp(".", 7, 7) })
	after := s.lookAt(s.dir)["."]
	s.want(parent.Mode == after.Mode, "the mode of the root's parent changed")
}

func hardLinks(s *scene) {
	s.file("a", "group").hard("b", s.path("a")).mkdir("d").hard("d/c", s.path("a")).file("x", "pair").hard("y",
		s.path("x")).file("z", "pair")
	s.back(func() { s.remove("b").file("b", "group").remove("z").hard("z", s.path("x")) })
	s.back(func() { s.file("a", "changed in place") })
	s.back(func() { s.remove("a", "b", "x").hard("x", s.path("d/c")) })
	s.back(func() { s.remove("a", "b", "d", "x", "y") })
	// Groups exchange a member without any change of bytes.
	s.remove("b").hard("b", s.path("a"))
	s.back(func() { s.remove("b", "y").hard("b", s.path("x")).hard("y", s.path("a")) })
}

func attributesOnly(s *scene) {
	s.file("mode", "m").file("time", "t").mkdir("dir").link("link", "mode").file("one", "same").hard("two", s.path("one"))
	r := s.back(func() { s.chmod("mode", 0o711) })
	s.changes("mode", r, map[string]rollback.Op{"mode": rollback.Attributes})
	r = s.back(func() { s.stamp("time", 3, 3) })
	s.changes("time", r, map[string]rollback.Op{"time": rollback.Attributes})
	r = s.back(func() { s.chmod("dir", 0o700).stamp("dir", 4, 4) })
	s.changes("directory", r, map[string]rollback.Op{"dir": rollback.Attributes})
	s.back(func() { s.stamp("link", 5, 5) })
	s.back(func() { s.remove("two").file("two", "same") })
}

// changes demands exactly these changes; the root's own time moves with its entries and may be among them.
func (s *scene) changes(what string, r *rollback.Restoration, want map[string]rollback.Op) {
	got := map[string]rollback.Op{}
	for _, c := range r.Changes {
		_, twice := got[c.Path]
		s.want(!twice, "%s: two changes of %q", what, c.Path)
		if _, wanted := want[c.Path]; wanted || c.Path != "." {
			got[c.Path] = c.Op
		}
	}
	s.want(fmt.Sprint(got) == fmt.Sprint(want), "%s: changes %v, want %v", what, got, want)
}

func extended(s *scene) {
	s.opt.Xattrs = true
	s.file("f", "f").mkdir("d").file("plain", "p").link("l", "f")
	s.must(s.err)
	if err := unix.Setxattr(s.path("f"), "user.colour", []byte("blue\x00\n"), 0); err != nil {
		s.checkpoint(s.subject()) // this file system has none, and a store must live with it
		return
	}
	s.must(unix.Setxattr(s.path("d"), "user.empty", nil, 0), unix.Setxattr(s.path("f"), "user.b", []byte("2"), 0))
	s.back(func() { s.must(unix.Setxattr(s.path("f"), "user.colour", []byte("red"), 0)) })
	s.back(func() { s.must(unix.Removexattr(s.path("d"), "user.empty")) })
	s.back(func() { s.must(unix.Setxattr(s.path("plain"), "user.more", []byte("m"), 0)) })
	s.back(func() { s.remove("f", "d") })
}

func touched(s *scene) {
	s.opt.MTime = rollback.MTimeTouch
	s.file("f", "old").stamp("f", 1_000_000_000, 0).file("same", "same").stamp("same", 1_000_000_000, 0)
	sub := s.subject()
	c := s.checkpoint(sub)
	s.file("f", "new")
	written := s.look()["f"]
	s.restore(sub, c.ID)
	s.holds("f", "old")
	now := s.look()
	s.want(now["f"].Sec >= written.Sec, "the rewritten file has the time %d, older than the edit, %d", now["f"].Sec,
		written.Sec)
	s.want(now["same"].Sec == 1_000_000_000, "a file that was not rewritten has another time")
}
