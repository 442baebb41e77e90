// SPDX-License-Identifier: Apache-2.0

//go:build unix

package allowlist_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/evoseal/containment/allowlist"
	"golang.org/x/sys/unix"
)

func TestOpenTreeLocks(t *testing.T) {
	t.Parallel()
	eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
		dir := newFiles(t, map[string]string{"src/a": "a\n"})
		first, err := allowlist.OpenTree(dir, o)
		must(t, err)
		if _, err := allowlist.OpenTree(dir, o); !errors.Is(err, allowlist.ErrLocked) {
			t.Errorf("second OpenTree: got %v, want ErrLocked", err)
		}
		must(t, first.Close())
		must(t, first.Close()) // twice is harmless
		if _, err := first.ReadFile("src/a"); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("ReadFile after Close: got %v, want fs.ErrClosed", err)
		}
		openTree(t, dir, o)
	})
}

func TestOpenTreeRefuses(t *testing.T) {
	t.Parallel()
	dir := newFiles(t, map[string]string{"file": "x"})
	for name, want := range map[string]error{
		filepath.Join(dir, "none"): fs.ErrNotExist,
		filepath.Join(dir, "file"): unix.ENOTDIR,
	} {
		if _, err := allowlist.OpenTree(name, nil); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
		dir := newFiles(t, map[string]string{"src/a": "content\n", "src/empty": "", "src/large": numbered(100, "x")})
		must(t, os.Symlink("a", filepath.Join(dir, "src/link")))
		must(t, os.Symlink("src", filepath.Join(dir, "dirlink")))
		must(t, unix.Mkfifo(filepath.Join(dir, "src/fifo"), 0o644))
		o.MaxRead = 100
		tree := openTree(t, dir, o)
		for _, c := range []struct {
			path, content string
			err           error
		}{
			{"src/a", "content\n", nil},
			{"src/empty", "", nil},
			{"src/none", "", fs.ErrNotExist},
			{"none/a", "", fs.ErrNotExist},
			{"src/link", "", allowlist.ErrSymlink},
			{"dirlink/a", "", allowlist.ErrSymlink},
			{"src/fifo", "", allowlist.ErrFileType},
			{"src", "", allowlist.ErrFileType},
			{"src/a/b", "", allowlist.ErrFileType},
			{"src/large", "", allowlist.ErrTooLarge},
			{"../x", "", allowlist.ErrPathEscapes},
			{"/etc/passwd", "", allowlist.ErrPathEscapes},
		} {
			content, err := tree.ReadFile(c.path)
			if string(content) != c.content || !errors.Is(err, c.err) {
				t.Errorf("%s: got %q, %v; want %q, %v", c.path, content, err, c.content, c.err)
			}
		}
	})
}

func TestOpenTreeSweeps(t *testing.T) {
	t.Parallel()
	eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
		const temp = ".al-0123456789abcdef"
		dir := newFiles(t, map[string]string{
			"src/" + temp: "old", "src/deep/" + temp: "old", // leftovers
			"src/.al-0123": "keep", "src/a": "keep", "configs/safety": "keep", "src/.al-dir0123456789/x": "keep",
		})
		at := func(name string) string { return filepath.Join(dir, name) }
		must(t, os.Link(at("configs/safety"), at("src/.al-1111111111111111"))) // two links: not ours
		must(t, os.Link(at("src/a"), at("src/.al-2222222222222222")))          // half a portable exchange
		must(t, os.Symlink("a", at("src/.al-3333333333333333")))
		must(t, os.Mkdir(at("outside"), 0o755))
		putFile(t, dir, "outside/"+temp, "keep", 0o644)
		must(t, os.Rename(at("outside"), dir+"-outside"))
		t.Cleanup(func() { os.RemoveAll(dir + "-outside") })
		must(t, os.Symlink(dir+"-outside", at("src/out")))
		want := readTree(t, dir)
		for _, gone := range []string{"src/" + temp, "src/deep/" + temp, "src/.al-2222222222222222"} {
			delete(want, gone)
		}
		openTree(t, dir, o)
		wantTree(t, dir, want)
		if _, err := os.Lstat(filepath.Join(dir+"-outside", temp)); err != nil {
			t.Errorf("the sweep left the tree: %v", err)
		}
	})
}

// TestTreeDisappears removes the tree at each stage of its use.
func TestTreeDisappears(t *testing.T) {
	t.Parallel()
	eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
		p := loadPolicy(t, treePolicyText)
		dir := newFiles(t, map[string]string{"src/a": "a\n"})
		tree := openTree(t, dir, o)
		plan, err := p.Plan(tree, []allowlist.Edit{modify("src/a", "a\n", "b\n"), create("src/x/y", "y\n")})
		must(t, err)
		must(t, os.RemoveAll(dir))
		if _, err := plan.Apply(t.Context()); err == nil {
			t.Error("Apply into a tree that is gone: no error")
		}
		if _, err := p.Plan(tree, []allowlist.Edit{create("src/x/y", "y\n")}); err == nil {
			if _, err := applyEdits(t, p, tree, create("src/x/y", "y\n")); err == nil {
				t.Error("Plan and Apply in a tree that is gone: no error")
			}
		}
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the tree is back: %v", err)
		}
	})
}
