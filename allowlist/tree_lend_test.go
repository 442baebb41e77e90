// SPDX-License-Identifier: Apache-2.0

//go:build unix

package allowlist_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/evoseal/containment/allowlist"
)

// TestLend: whoever is called can lock the directory, as package rollback does, and nobody can afterwards.
func TestLend(t *testing.T) {
	t.Parallel()
	eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
		dir := newFiles(t, sealedFiles)
		tree, err := allowlist.OpenTree(dir, o)
		must(t, err)
		defer tree.Close()
		failed := errors.New("failed")
		err = tree.Lend(func(path string) error {
			if real, _ := filepath.EvalSymlinks(dir); path != real {
				t.Errorf("the directory is %q, want %q", path, real)
			}
			other, err := allowlist.OpenTree(dir, nil)
			must(t, err)
			must(t, other.Close())
			return failed
		})
		if !errors.Is(err, failed) {
			t.Errorf("the error of the function is lost: %v", err)
		}
		if _, err := allowlist.OpenTree(dir, nil); !errors.Is(err, allowlist.ErrLocked) {
			t.Errorf("the lock was not taken back: %v", err)
		}
		if _, err := tree.ReadFile("src/a.go"); err != nil {
			t.Errorf("the tree cannot be used any more: %v", err)
		}
	})
}

// TestLendToSomebodyWhoKeepsIt: the tree is closed then.
func TestLendToSomebodyWhoKeepsIt(t *testing.T) {
	t.Parallel()
	dir := newFiles(t, sealedFiles)
	tree, err := allowlist.OpenTree(dir, nil)
	must(t, err)
	defer tree.Close()
	var other *allowlist.Tree
	err = tree.Lend(func(string) (err error) {
		other, err = allowlist.OpenTree(dir, nil)
		return err
	})
	if !errors.Is(err, allowlist.ErrLocked) {
		t.Errorf("nothing is said: %v", err)
	}
	defer other.Close()
	if _, err := tree.ReadFile("src/a.go"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("the tree is still open: %v", err)
	}
	if err := tree.Lend(func(string) error { t.Error("it was called"); return nil }); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("it is lent again: %v", err)
	}
}

// TestLendOfATreeThatMoved: another directory at its place is not it.
func TestLendOfATreeThatMoved(t *testing.T) {
	t.Parallel()
	dir := newFiles(t, sealedFiles)
	tree, err := allowlist.OpenTree(dir, nil)
	must(t, err)
	defer tree.Close()
	must(t, os.Rename(dir, dir+"-moved"))
	t.Cleanup(func() { os.RemoveAll(dir + "-moved") })
	must(t, os.Mkdir(dir, 0o755))
	if err := tree.Lend(func(string) error { t.Error("it was called"); return nil }); err == nil {
		t.Error("it was lent")
	}
}

// TestRecheck finds what Next finds, also when a file keeps its size and its time of modification.
func TestRecheck(t *testing.T) {
	t.Parallel()
	p := loadPolicy(t, treePolicyText)
	for name, change := range map[string]func(t *testing.T, dir string){
		"same size and time": func(t *testing.T, dir string) { rewrite(t, dir, "src/a.go", "b\n") },
		"other file at its place": func(t *testing.T, dir string) {
			path := filepath.Join(dir, "src/a.go")
			info, err := os.Stat(path)
			must(t, err)
			putFile(t, dir, "src/new", "b\n", 0o644)
			must(t, os.Chtimes(filepath.Join(dir, "src/new"), info.ModTime(), info.ModTime()))
			must(t, os.Rename(filepath.Join(dir, "src/new"), path))
		},
		"added":   func(t *testing.T, dir string) { putFile(t, dir, "src/new", "", 0o644) },
		"removed": func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "src/a.go"))) },
		"mode":    func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, "src/a.go"), 0o755)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
				dir := newFiles(t, sealedFiles)
				tree, err := allowlist.OpenTree(dir, o)
				must(t, err)
				defer tree.Close()
				time.Sleep(2200 * time.Millisecond) // until then every file is read again
				m, err := p.SealFull(tree)
				must(t, err)
				again, err := m.Recheck(tree, nil)
				must(t, err)
				if again.Digest() != m.Digest() {
					t.Error("the manifest is another one")
				}
				change(t, dir)
				if _, err := again.Recheck(tree, nil); !errors.Is(err, allowlist.ErrTampered) {
					t.Errorf("Recheck: %v", err)
				}
				if _, err := again.Next(tree, nil, nil); !errors.Is(err, allowlist.ErrTampered) {
					t.Errorf("Next: %v", err)
				}
			})
		})
	}
}

// TestFiles yields what was sealed, in order, with the digests of the contents.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := newFiles(t, map[string]string{"src/b": "two", "src/a": "one", "configs/x": "three"})
	must(t, os.Symlink("a", filepath.Join(dir, "src/link")))
	tree, err := allowlist.OpenTree(dir, nil)
	must(t, err)
	defer tree.Close()
	m, err := loadPolicy(t, treePolicyText).SealFull(tree)
	must(t, err)
	want := []struct{ path, content string }{{"configs/x", "three"}, {"src/a", "one"}, {"src/b", "two"}}
	n := 0
	for path, digest := range m.Files() {
		if n >= len(want) || path != want[n].path || digest != allowlist.Sum([]byte(want[n].content)) {
			t.Errorf("%d: %s has %v", n, path, digest)
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d files, want %d", n, len(want))
	}
	for range m.Files() {
		break // the iteration can be left
	}
}
