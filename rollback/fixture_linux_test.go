// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// bench is a store, and a tree that it has a checkpoint of.
type bench struct {
	t     *testing.T
	s     *Store
	store string
	tree  string
	old   Checkpoint
}

// newBench makes the standard tree and takes a checkpoint of it.
func newBench(t *testing.T, o Options) *bench {
	t.Helper()
	return newBenchIn(t, place(t, o.Sync), o)
}

func newBenchIn(t *testing.T, top string, o Options) *bench {
	t.Helper()
	b := &bench{t: t, store: filepath.Join(top, "store"), tree: filepath.Join(top, "tree")}
	check(t, os.Mkdir(b.tree, 0o755))
	plant(t, b.tree)
	o.Special = SpecialSkip
	b.open(o)
	var err error
	b.old, err = b.s.Checkpoint(t.Context(), b.tree, Meta{Label: "good"})
	check(t, err)
	return b
}

// place is in memory unless the test is about what is durable: ext4 passes over inodes that were freed within the last
// seconds one by one, which makes many small trees slow.
func place(t *testing.T, sync SyncMode) string {
	t.Helper()
	const memory = "/dev/shm"
	if sync == SyncProcess && unix.Access(memory, unix.W_OK) == nil {
		dir, err := os.MkdirTemp(memory, "rollback-test-")
		check(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return dir
	}
	return t.TempDir()
}

func (b *bench) open(o Options) {
	b.t.Helper()
	s, err := Open(b.store, &o)
	check(b.t, err)
	b.t.Cleanup(func() { _ = s.Close() })
	b.s = s
}

// scratchy is for tests that are not about syncs.
var scratchy = Options{Sync: SyncProcess}

func (b *bench) path(p string) string { return filepath.Join(b.tree, p) }

func (b *bench) write(p, text string) {
	b.t.Helper()
	check(b.t, os.MkdirAll(filepath.Dir(b.path(p)), 0o755))
	check(b.t, os.WriteFile(b.path(p), []byte(text), 0o644))
}

// plant makes one of everything.
func plant(t *testing.T, dir string) {
	t.Helper()
	p := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []string{"src/deep/er", "empty", "swap-dir/sub", "closed", ".git", "nested/.git", "__pycache__"} {
		check(t, os.MkdirAll(p(d), 0o755))
	}
	for name, text := range map[string]string{
		"a": "alpha\n", "src/b": "beta", "src/deep/er/c": strings.Repeat("gamma ", 1000), "src/zero": "",
		"run":       "#!/bin/sh\n",
		"swap-file": "file", "swap-dir/one": "1", "swap-dir/sub/two": "2", "closed/in": "locked in", "odd\n\xff": "odd",
		".git/HEAD": "ref", "nested/.git/config": "c", "nested/code": "n", "__pycache__/x.pyc": "cache", "-rf": "dash",
		"pair-a": "both", "src/trio-b": "three",
	} {
		check(t, os.WriteFile(p(name), []byte(text), 0o644))
	}
	for name, target := range map[string]string{"link": "a", "up": "../../x", "loop": "loop", "swap-link": "src"} {
		check(t, os.Symlink(target, p(name)))
	}
	check(t, os.Link(p("pair-a"), p("src/pair-b")))
	check(t, os.Link(p("src/trio-b"), p("trio-a")))
	check(t, os.Link(p("src/trio-b"), p("swap-dir/trio-c")))
	check(t, os.Chmod(p("run"), 0o750))
	check(t, os.Chmod(p("closed"), 0o555))
	t.Cleanup(func() { _ = os.Chmod(p("closed"), 0o755); _ = os.Chmod(dir, 0o755) })
	when := time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)
	for _, name := range []string{"a", "src/b", "src/deep", "empty", "closed", "."} {
		check(t, os.Chtimes(p(name), when, when))
	}
}

// spoil changes something of everything.
func spoil(t *testing.T, dir string) {
	t.Helper()
	p := func(name string) string { return filepath.Join(dir, name) }
	check(t, os.WriteFile(p("a"), []byte("bad"), 0o644))
	check(t, os.Remove(p("src/b")))
	check(t, os.MkdirAll(p("new/dir/tree"), 0o700))
	check(t, os.WriteFile(p("new/dir/tree/file"), []byte("added"), 0o600))
	check(t, os.WriteFile(p("src/added"), []byte("added too"), 0o644))
	check(t, os.Chmod(p("run"), 0o644))
	check(t, os.Remove(p("swap-file")))
	check(t, os.MkdirAll(p("swap-file/now/dir"), 0o755))
	check(t, os.WriteFile(p("swap-file/now/f"), []byte("f"), 0o644))
	check(t, os.RemoveAll(p("swap-dir")))
	check(t, os.Symlink("/etc", p("swap-dir")))
	check(t, os.Remove(p("swap-link")))
	check(t, os.WriteFile(p("swap-link"), []byte("was a link"), 0o644))
	check(t, os.Remove(p("link")))
	check(t, os.Symlink("src", p("link")))
	check(t, os.RemoveAll(p("src/deep")))
	check(t, os.Remove(p("empty")))
	check(t, os.Remove(p("src/pair-b")))
	check(t, os.WriteFile(p("src/pair-b"), []byte("both"), 0o644))
	check(t, os.Chmod(p("closed"), 0o755))
	check(t, os.WriteFile(p("closed/in"), []byte("opened"), 0o644))
	check(t, os.Chmod(p("closed"), 0o555))
	check(t, os.Chmod(dir, 0o700))
}

// picture describes a tree by what a restore has to bring back, and what it has to leave alone.
func picture(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	groups := map[uint64]string{}
	check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		text := fmt.Sprintf("%o %d.%09d", st.Mode, st.Mtim.Sec, st.Mtim.Nsec)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %d %x", len(data), sha256.Sum256(data))
			if st.Nlink > 1 {
				if groups[st.Ino] == "" {
					groups[st.Ino] = rel
				}
				text += " with " + groups[st.Ino]
			}
		case unix.S_IFLNK:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " -> " + target
		}
		all[rel] = text
		return nil
	}))
	return all
}

func same(t *testing.T, what string, want, got map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
