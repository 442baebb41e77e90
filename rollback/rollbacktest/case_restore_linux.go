// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback"
)

// restoreCases are about what a restore brings back and what it leaves alone.
func restoreCases() []Case {
	return []Case{
		newCase("R1", "byte-for-byte", 0, "changed, added and removed entries do not all come back", byteForByte),
		newCase("R2", "kinds", 0, "a file that became a directory or a link, or the other way round, blocks the restore",
			kinds),
		newCase("R3", "truncation", 0, "a longer file keeps its tail", truncation),
		newCase("R5", "untouched", 0, "files that did not change are written again, so builds and watchers start", unchanged),
		newCase("R6", "git", 0, "a repository's own data is captured, reset or removed", gitUntouched),
		newCase("R9", "outside-hard-link", 0, "a file is written in place, and its other name outside changes too",
			outsideLink),
		newCase("R13", "planted-link", 0, "a restore writes through a link that stands at a file or a parent", plantedLink),
		newCase("R14", "old-descriptor", 0, "an open descriptor of the program sees its file change", oldDescriptor),
	}
}

func byteForByte(s *scene) {
	s.must(sample(s.tree))
	sub := s.subject()
	want, c := s.look(), s.checkpoint(sub)
	s.want(c.Files == 30 && c.Links == 3 && c.Bytes > 0, "%d files, %d links, %d bytes; want 30, 3 and more than 0",
		c.Files, c.Links, c.Bytes)
	s.must(scramble(s.tree))
	s.restore(sub, c.ID)
	s.same("the tree after the restore", want, s.look())
	// A store that only its memory makes right is none.
	s.must(scramble(s.tree))
	s.restore(s.again(), c.ID)
	s.same("the tree after a restore by a new process", want, s.look())
	again := s.checkpoint(s.again())
	s.want(again.Digest == c.Digest, "the same tree has another digest")
}

func kinds(s *scene) {
	make := map[string]func(string){
		"file": func(n string) { s.file(n, "file "+n) }, "dir": func(n string) { s.mkdir(n) },
		"full": func(n string) { s.file(n+"/a/b", n).link(n+"/l", "a") }, "link": func(n string) { s.link(n, "target") },
		"dirlink": func(n string) { s.link(n, "..") }, "none": func(string) {},
	}
	for from, before := range make {
		for to := range make {
			before("x/" + from + "-" + to)
			before("x/deep/" + from + "-" + to + "/er")
		}
	}
	s.back(func() {
		for from := range make {
			for to, after := range make {
				for _, name := range []string{"x/" + from + "-" + to, "x/deep/" + from + "-" + to + "/er"} {
					s.remove(name)
					after(name)
				}
			}
		}
	})
	// Two names change places, one of them into the other's directory.
	s.remove("x").file("p", "p").file("q/r", "r").link("s", "p")
	s.back(func() { s.rename("p", "tmp").rename("q", "p").rename("tmp", "q").rename("s", "p/s") })
	s.back(func() { s.remove("p", "q", "s") })
}

func truncation(s *scene) {
	s.file("short", "short").file("none", "").file("long", strings.Repeat("long ", 50_000))
	s.back(func() {
		s.file("short", strings.Repeat("tail ", 50_000)).file("none", "tail").file("long", "short now")
	})
}

func unchanged(s *scene) {
	s.must(sample(s.tree))
	sub := s.subject()
	c := s.checkpoint(sub)
	before := s.look()
	time.Sleep(20 * time.Millisecond) // beyond the tick of a coarse clock
	s.file("README", "changed").remove("many/05").file("src/added", "added")
	s.restore(sub, c.ID)
	after := s.look()
	s.same("the tree after the restore", before, after)
	changed := []string{".", "README", "many", "src", "src/added"}
	rest := before.Without("many/05")
	for _, path := range changed {
		delete(rest, path)
	}
	s.untouched("what had not changed", rest, after.Without("many/05", "README").only(rest))
	before = s.look()
	s.restore(sub, c.ID)
	s.untouched("the tree after a restore that had nothing to do", before, s.look())
}

// only returns the part of the tree whose names another one has.
func (t Tree) only(names Tree) Tree {
	part := Tree{}
	for name, n := range t {
		if _, ok := names[name]; ok {
			part[name] = n
		}
	}
	return part
}

func gitUntouched(s *scene) {
	repository := func(dir string) {
		s.file(dir+"/HEAD", "ref: refs/heads/main\n").file(dir+"/index", "DIRC").file(dir+"/objects/ab/cd", "object")
		s.file(dir+"/hooks/post-checkout", "#!/bin/sh\n").mkdir(dir + "/refs/tags")
	}
	repository(".git")
	repository("vendor/lib/.git")
	repository("case/.GIT")
	s.file("sub/module/.git", "gitdir: ../../.git/modules/m\n").file("f", "f").file("vendor/lib/code",
		"code").file("sub/module/m", "m")
	s.file(".gitignore", "*.o\n").file(".gitmodules", "m")
	places := []string{".git", "vendor/lib/.git", "case/.GIT", "sub/module/.git"}
	old := []unix.Timespec{{Sec: 1000}, {Nsec: unix.UTIME_OMIT}}
	s.must(s.err, unix.UtimesNanoAt(unix.AT_FDCWD, s.path(".git/HEAD"), old, 0))
	sub := s.subject()
	c := s.checkpoint(sub)
	var st unix.Stat_t
	s.must(unix.Stat(s.path(".git/HEAD"), &st))
	s.want(st.Atim.Sec == 1000, "the checkpoint has read .git/HEAD")
	// The repository moves on, and that is not the store's business: no checkpoint differs by it, no restore resets it.
	s.file(".git/HEAD", "ref: refs/heads/other\n").file(".git/index",
		"DIRC2").remove(".git/objects").file(".git/index.lock", "")
	s.file("case/.GIT/HEAD", "moved").file("sub/module/.git", "gitdir: elsewhere\n").file("vendor/lib/.git/MERGE_HEAD",
		"m")
	same := s.checkpoint(sub)
	s.want(same.Digest == c.Digest, "the digest depends on .git")
	before := s.look()
	s.file("f", "bad").file("vendor/lib/code", "bad").remove("sub/module/m").file("vendor/lib/new",
		"bad").remove(".gitignore")
	s.restore(sub, c.ID)
	after := s.look()
	for _, place := range places {
		s.untouched("a repository", before.Under(place), after.Under(place))
	}
	s.holds("f", "f")
	s.holds(".gitignore", "*.o\n")
	s.same("the rest", before.Without(places...), after.Without(places...))
}

func outsideLink(s *scene) {
	s.must(os.WriteFile(s.outside("name"), []byte("version one"), 0o644))
	s.hard("f", s.outside("name"))
	sub := s.subject()
	c := s.checkpoint(sub)
	s.file("f", "version two").chmod("f", 0o600) // both names
	before := s.lookAt(s.outside(""))
	r := s.restore(sub, c.ID)
	s.holds("f", "version one")
	after := s.lookAt(s.outside(""))
	s.same("the name outside", before, after)
	s.want(before["name"].Touch.Ino == after["name"].Touch.Ino, "the name outside has another inode")
	s.want(r.Digest == c.Digest, "the digest after the restore is not the checkpoint's")
}

func plantedLink(s *scene) {
	s.must(os.MkdirAll(s.outside("d/e"), 0o755))
	for _, name := range []string{"f", "d/f", "d/e/f", "x"} {
		s.must(os.WriteFile(s.outside(name), []byte("outside "+name), 0o600))
	}
	outside := s.lookAt(s.outside(""))
	s.file("f", "f").file("d/f", "d/f").file("d/e/f", "d/e/f").chmod("d/e", 0o700).stamp("d/e/f", 9, 9)
	for name, plant := range map[string]func(){
		"at a file":      func() { s.remove("f").link("f", s.outside("f")) },
		"at a parent":    func() { s.remove("d").link("d", s.outside("d")) },
		"deeper":         func() { s.remove("d/e").link("d/e", "../../outside/d/e") },
		"at a free name": func() { s.link("x", s.outside("x")).link("new", s.outside("")) },
	} {
		s.back(plant)
		s.untouched("what lies outside, link "+name, outside, s.lookAt(s.outside("")))
	}
}

// oldDescriptor: whoever has a file open keeps what it opened.
func oldDescriptor(s *scene) {
	s.file("f", "one")
	sub := s.subject()
	c := s.checkpoint(sub)
	s.file("f", "two, open")
	f, err := os.Open(s.path("f"))
	s.must(err)
	defer f.Close()
	s.restore(sub, c.ID)
	got := make([]byte, 9)
	_, err = f.ReadAt(got, 0)
	s.want(err == nil && string(got) == "two, open", "the open file reads %q (%v)", got, err)
	s.holds("f", "one")
}

// states takes a checkpoint of each of a few trees and returns what they looked like.
func (s *scene) states(sub Subject, n int) (ids []rollback.ID, trees []Tree) {
	for i := range n {
		s.file("state", fmt.Sprint("state ", i)).file(fmt.Sprintf("only/%d", i), "x").remove(fmt.Sprintf("only/%d", i-1))
		trees = append(trees, s.look())
		ids = append(ids, s.checkpoint(sub).ID)
	}
	return ids, trees
}
