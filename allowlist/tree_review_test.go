// SPDX-License-Identifier: Apache-2.0

//go:build unix

package allowlist_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/evoseal/containment/allowlist"
	"github.com/google/go-cmp/cmp"
)

const openPolicyText = "version: 1\nsurface:\n  - {paths: [\"**\"], ops: [modify, create, delete]}\ngate: []\n"

// TestPolicyFileStaysProtected: neither another working directory nor another name of the tree opens the policy file.
func TestPolicyFileStaysProtected(t *testing.T) {
	edit := modify("pol/p.txt", openPolicyText, "evil")
	newTree := func(t *testing.T) (root string, p *allowlist.Policy) {
		root = newFiles(t, map[string]string{"pol/p.txt": openPolicyText})
		p, err := allowlist.LoadFile(filepath.Join(root, "pol/p.txt"))
		must(t, err)
		return root, p
	}
	t.Run("another working directory", func(t *testing.T) {
		root, p := newTree(t)
		t.Chdir(root)
		tree := openTree(t, ".", nil)
		t.Chdir(t.TempDir())
		_, err := p.Plan(tree, []allowlist.Edit{edit})
		if diff := cmp.Diff([]string{"pol/p.txt protected"}, codes(t, err)); diff != "" {
			t.Errorf("denials (-want +got):\n%s", diff)
		}
	})
	t.Run("renamed tree", func(t *testing.T) {
		root, p := newTree(t)
		tree := openTree(t, root, nil)
		must(t, os.Rename(root, root+"-moved"))
		t.Cleanup(func() { os.RemoveAll(root + "-moved") })
		for range 2 { // the failure is not remembered as an answer
			if _, err := p.Plan(tree, []allowlist.Edit{edit}); err == nil {
				t.Error("the policy file of a tree that was moved can be edited")
			}
			if _, err := p.Seal(tree); err == nil {
				t.Error("a tree that was moved was sealed")
			}
		}
		must(t, os.Rename(root+"-moved", root))
		if _, err := p.Plan(tree, []allowlist.Edit{edit}); !errors.Is(err, allowlist.ErrProtected) {
			t.Errorf("back in place: %v", err)
		}
	})
	t.Run("another name of the file", func(t *testing.T) {
		root, p := newTree(t)
		tree := openTree(t, root, nil)
		if _, err := p.Plan(tree, []allowlist.Edit{edit}); !errors.Is(err, allowlist.ErrProtected) {
			t.Fatalf("got %v", err)
		}
		must(t, os.Rename(filepath.Join(root, "pol/p.txt"), filepath.Join(root, "q.txt")))
		_, err := p.Plan(tree, []allowlist.Edit{modify("q.txt", openPolicyText, "evil")})
		if diff := cmp.Diff([]string{"q.txt protected"}, codes(t, err)); diff != "" {
			t.Errorf("denials (-want +got):\n%s", diff)
		}
	})
	t.Run("no file any more", func(t *testing.T) {
		root, p := newTree(t)
		tree := openTree(t, root, nil)
		must(t, os.Remove(filepath.Join(root, "pol/p.txt")))
		if _, err := p.Plan(tree, []allowlist.Edit{create("a", "x")}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v, want fs.ErrNotExist", err)
		}
	})
}

// TestSealGitContainers: what holds the watched files of a git directory cannot be exchanged, whatever its name.
func TestSealGitContainers(t *testing.T) {
	t.Parallel()
	p := loadPolicy(t, treePolicyText)
	away := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, name)
			must(t, os.RemoveAll(path))
			must(t, os.Symlink("/nowhere", path))
		}
	}
	put := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { putFile(t, dir, name, "evil", 0o644) }
	}
	for name, c := range map[string]struct {
		change     func(t *testing.T, dir string)
		seal, full bool // whether it is found
	}{
		"modules":              {away(".git/modules"), true, true},
		"objects":              {away(".git/objects"), true, true},
		"objects/info":         {away(".git/objects/info"), true, true},
		"objects/pack":         {away(".git/objects/pack"), true, true},
		"worktrees":            {away(".git/worktrees"), true, true},
		"one worktree":         {away(".git/worktrees/w"), true, true},
		"logs":                 {away(".git/logs"), true, true},
		"index":                {away(".git/index"), true, true},
		"submodule":            {away(".git/modules/v"), true, true},
		"submodule objects":    {put(".git/modules/v/objects/config"), true, true},
		"submodule logs":       {put(".git/modules/v/logs/hooks/post-checkout"), true, true},
		"submodule hooks":      {put(".git/modules/hooks/config"), true, true},
		"submodule in module":  {put(".git/modules/hooks/modules/objects/config"), true, true},
		"submodule and prefix": {put(".git/modules/hooks/sub/config"), true, true},
		"head over objects":    {put(".git/modules/v/HEAD"), true, true},
		"reftable":             {put(".git/reftable/x"), true, true},
		"rebase-merge":         {put(".git/rebase-merge/git-rebase-todo"), true, true},
		"sequencer":            {put(".git/sequencer/todo"), true, true},
		"shallow":              {put(".git/shallow"), true, true},
		"anything else":        {put(".git/evil/x"), false, true},
		"object":               {put(".git/objects/ab/x"), false, false},
		"pack":                 {put(".git/objects/pack/x"), false, false},
		"index changes":        {put(".git/index"), false, false},
		"log":                  {put(".git/logs/HEAD"), false, false},
		"submodule object":     {put(".git/modules/hooks/objects/ab/x"), false, false},
		"submodule index":      {put(".git/modules/hooks/index"), false, false},
		"worktree index":       {put(".git/worktrees/w/index"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
				dir := newFiles(t, map[string]string{
					"src/a": "", ".git/HEAD": "h\n", ".git/config": "c\n", ".git/index": "i\n", ".git/logs/HEAD": "l\n",
					".git/objects/info/packs": "", ".git/objects/ab/c": "", ".git/objects/pack/p": "", ".git/worktrees/w/gitdir": "g\n",
					".git/modules/v/objects/HEAD": "h\n", ".git/modules/v/objects/config": "ok\n", ".git/modules/v/logs/config": "ok\n",
					".git/modules/hooks/HEAD": "h\n", ".git/modules/hooks/config": "c\n", ".git/modules/hooks/objects/ab/c": "",
				})
				tree := openTree(t, dir, o)
				m, err := p.Seal(tree)
				must(t, err)
				full, err := p.SealFull(tree)
				must(t, err)
				c.change(t, dir)
				if err := m.Verify(tree); errors.Is(err, allowlist.ErrTampered) != c.seal {
					t.Errorf("Verify: %v", err)
				}
				if err := full.VerifyWithin(tree, nil, nil); errors.Is(err, allowlist.ErrTampered) != c.full {
					t.Errorf("VerifyWithin: %v", err)
				}
			})
		})
	}
}

// TestGitPointers: a pointer neither hides names nor leads to a git directory that can be edited.
func TestGitPointers(t *testing.T) {
	t.Parallel()
	p := loadPolicy(t, openPolicyText)
	t.Run("to sources", func(t *testing.T) {
		t.Parallel()
		for _, to := range []string{"src", ".", "src/..", "link"} {
			dir := newFiles(t, map[string]string{".git": "gitdir: " + to + "\n", "src/a.py": "x"})
			must(t, os.Symlink("src", filepath.Join(dir, "link")))
			if tree, err := allowlist.OpenTree(dir, nil); err == nil {
				t.Errorf("gitdir: %s was taken", to)
				must(t, tree.Close())
			}
		}
	})
	t.Run("hides nothing", func(t *testing.T) {
		t.Parallel()
		dir := newFiles(t, map[string]string{".git": "gitdir: src\n", "src/HEAD": "h", "src/objects/x": "", "src/a": "x"})
		tree := openTree(t, dir, nil)
		m, err := p.Seal(tree)
		must(t, err)
		full, err := p.SealFull(tree)
		must(t, err)
		putFile(t, dir, "src/objects/ab/Makefile", "evil", 0o644)
		putFile(t, dir, "src/a", "evil", 0o644)
		got, _ := errors.AsType[*allowlist.TamperError](m.Verify(tree))
		if diff := cmp.Diff(&allowlist.TamperError{Added: []string{"src/objects/ab/Makefile"}}, got); diff != "" {
			t.Errorf("Verify (-want +got):\n%s", diff)
		}
		got, _ = errors.AsType[*allowlist.TamperError](full.VerifyWithin(tree, nil, []string{"src/**"}))
		want := &allowlist.TamperError{Added: []string{"src/objects/ab", "src/objects/ab/Makefile"}, Changed: []string{"src/a"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("VerifyWithin (-want +got):\n%s", diff)
		}
	})
	for name, c := range map[string]struct {
		files map[string]string
		links map[string]string
		path  string
	}{
		"missing":          {map[string]string{".git": "gitdir: no/where\n"}, nil, "no/where/config"},
		"nested":           {map[string]string{"sub/.git": "gitdir: ../store\n", "store/config": "c"}, nil, "store/hooks/post-checkout"},
		"nested missing":   {map[string]string{"a/sub/.git": "gitdir: ../../no/where"}, nil, "no/where/config"},
		"nested by link":   {map[string]string{"store/config": "c", "sub/a": ""}, map[string]string{"sub/.git": "../store"}, "store/hooks/x"},
		"nested dead link": {map[string]string{"sub/a": ""}, map[string]string{"sub/.git": "../no/where"}, "no/where/config"},
		"through a link":   {map[string]string{"sub/.git": "gitdir: l/../store", "x/y/a": "", "x/store/config": "c"}, map[string]string{"sub/l": "../x/y"}, "x/store/hooks/x"},
		"nested commondir": {map[string]string{"sub/.git/HEAD": "h", "sub/.git/commondir": "../../store"}, nil, "store/config"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
				dir := newFiles(t, c.files)
				for link, target := range c.links {
					must(t, os.Symlink(target, filepath.Join(dir, link)))
				}
				_, err := p.Plan(openTree(t, dir, o), []allowlist.Edit{create(c.path, "x"), create("free", "x")})
				if diff := cmp.Diff([]string{c.path + " protected"}, codes(t, err)); diff != "" {
					t.Errorf("denials (-want +got):\n%s", diff)
				}
			})
		})
	}
	t.Run("ambiguous", func(t *testing.T) {
		t.Parallel()
		for content, ok := range map[string]bool{"gitdir: a\x00b": false, "gitdir: a\nb": false, "text": true, "": true} {
			dir := newFiles(t, map[string]string{"sub/.git": content})
			tree, err := allowlist.OpenTree(dir, nil)
			if (err == nil) != ok {
				t.Errorf("%q: %v", content, err)
			}
			if err == nil {
				must(t, tree.Close())
			}
		}
	})
}

// TestCoreOfTheFuture: a core path that does not exist yet is protected where its links lead, and one that cannot be
// resolved is an error.
func TestCoreOfTheFuture(t *testing.T) {
	t.Parallel()
	p := loadPolicy(t, openPolicyText)
	for name, link := range map[string]struct{ target, core, path string }{
		"link to the tree":    {"tree", "link/state/rollback/store", "state/rollback/store/x"},
		"link to nothing yet": {"tree/no/where", "link/store", "no/where/store/x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newFiles(t, map[string]string{"tree/a": ""})
			must(t, os.Symlink(link.target, filepath.Join(dir, "link")))
			tree := openTree(t, filepath.Join(dir, "tree"), &allowlist.TreeOptions{Core: []string{filepath.Join(dir, link.core)}})
			_, err := p.Plan(tree, []allowlist.Edit{create(link.path, "x")})
			if diff := cmp.Diff([]string{link.path + " protected"}, codes(t, err)); diff != "" {
				t.Errorf("denials (-want +got):\n%s", diff)
			}
		})
	}
	dir := newFiles(t, map[string]string{"tree/a": ""})
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	for _, core := range []string{"loop/x", "tree/a/x"} {
		tree, err := allowlist.OpenTree(filepath.Join(dir, "tree"), &allowlist.TreeOptions{Core: []string{filepath.Join(dir, core)}})
		if err == nil {
			t.Errorf("core path %s was taken", core)
			must(t, tree.Close())
		}
	}
}

// TestVerifyWithinForeignPlan: a plan explains only the tree that it was made for, under the policy of the manifest.
func TestVerifyWithinForeignPlan(t *testing.T) {
	t.Parallel()
	p, other := loadPolicy(t, treePolicyText), loadPolicy(t, openPolicyText)
	files := map[string]string{"src/a": "a\n", "configs/s": "s\n"}
	tree, elsewhere := openTree(t, newFiles(t, files), nil), openTree(t, newFiles(t, files), nil)
	m, err := p.SealFull(tree)
	must(t, err)
	for _, c := range []struct {
		policy *allowlist.Policy
		tree   *allowlist.Tree
		want   error
	}{{p, tree, nil}, {p, elsewhere, allowlist.ErrForeignPlan}, {other, tree, allowlist.ErrForeignPlan}} {
		plan, err := c.policy.Plan(c.tree, []allowlist.Edit{modify("src/a", "a\n", "b\n")})
		must(t, err)
		if err := m.VerifyWithin(tree, plan, nil); !errors.Is(err, c.want) {
			t.Errorf("got %v, want %v", err, c.want)
		}
	}
}
