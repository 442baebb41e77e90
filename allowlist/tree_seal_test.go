// SPDX-License-Identifier: Apache-2.0

//go:build unix

package allowlist_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/evoseal/containment/allowlist"
	"github.com/google/go-cmp/cmp"
)

var sealedFiles = map[string]string{
	"src/a.go": "a\n", "src/deep/Makefile": "all:\n", "configs/safety.yaml": "on\n", "configs/sub/x": "x\n",
	".git/config": "[core]\n", ".git/HEAD": "ref\n", ".git/index": "i\n", ".git/hooks/pre-commit": "h\n",
	".git/objects/ab/cdef": "o\n", ".git/objects/info/alternates": "p\n", ".git/refs/heads/main": "1\n",
	".git/logs/HEAD": "l\n", ".git/modules/a/b/config": "c\n", ".git/modules/a/b/HEAD": "h\n", ".git/modules/a/b/objects/ab/config": "o\n",
	".git/worktrees/w/gitdir": "g\n", ".git/worktrees/w/index": "i\n",
}

// write replaces content in place, and puts size-preserving changes under the old times.
func rewrite(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	must(t, err)
	must(t, os.WriteFile(path, []byte(content), 0o644))
	must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
}

func TestSealVerify(t *testing.T) {
	t.Parallel()
	p := loadPolicy(t, treePolicyText)
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		want   *allowlist.TamperError
	}{
		"nothing":            {func(*testing.T, string) {}, nil},
		"surface is free":    {func(t *testing.T, dir string) { putFile(t, dir, "src/new/b.go", "b\n", 0o600) }, nil},
		"same size and time": {func(t *testing.T, dir string) { rewrite(t, dir, "configs/safety.yaml", "no\n") }, &allowlist.TamperError{Changed: []string{"configs/safety.yaml"}}},
		"added below":        {func(t *testing.T, dir string) { putFile(t, dir, "configs/new", "", 0o644) }, &allowlist.TamperError{Added: []string{"configs/new"}}},
		"new protected name": {func(t *testing.T, dir string) { putFile(t, dir, "src/x/.ENV", "K=1\n", 0o644) }, &allowlist.TamperError{Added: []string{"src/x/.ENV"}}},
		"removed":            {func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "src/deep/Makefile"))) }, &allowlist.TamperError{Removed: []string{"src/deep/Makefile"}}},
		"retyped": {func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, "configs/safety.yaml"), filepath.Join(dir, "src/away")))
			must(t, os.Symlink("../src/away", filepath.Join(dir, "configs/safety.yaml")))
		}, &allowlist.TamperError{Retyped: []string{"configs/safety.yaml"}}},
		"directory becomes a link": {func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, "configs"), filepath.Join(dir, "src/away")))
			must(t, os.Symlink("src/away", filepath.Join(dir, "configs")))
		}, &allowlist.TamperError{Retyped: []string{"configs"}, Removed: []string{"configs/link", "configs/safety.yaml", "configs/sub", "configs/sub/x"}}},
		"retargeted": {func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "configs/link")))
			must(t, os.Symlink("sub/y", filepath.Join(dir, "configs/link")))
		}, &allowlist.TamperError{Changed: []string{"configs/link"}}},
		"mode": {func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, "configs/sub/x"), 0o666)) }, &allowlist.TamperError{Changed: []string{"configs/sub/x"}}},
		"second link": {func(t *testing.T, dir string) {
			must(t, os.Link(filepath.Join(dir, "configs/sub/x"), filepath.Join(dir, "src/x")))
		}, &allowlist.TamperError{Changed: []string{"configs/sub/x"}}},
		"git config":    {func(t *testing.T, dir string) { rewrite(t, dir, ".git/config", "[user]\n") }, &allowlist.TamperError{Changed: []string{".git/config"}}},
		"git hook":      {func(t *testing.T, dir string) { putFile(t, dir, ".git/hooks/post-merge", "x", 0o755) }, &allowlist.TamperError{Added: []string{".git/hooks/post-merge"}}},
		"git submodule": {func(t *testing.T, dir string) { rewrite(t, dir, ".git/modules/a/b/config", "x\n") }, &allowlist.TamperError{Changed: []string{".git/modules/a/b/config"}}},
		"git work tree": {func(t *testing.T, dir string) { rewrite(t, dir, ".git/worktrees/w/gitdir", "x\n") }, &allowlist.TamperError{Changed: []string{".git/worktrees/w/gitdir"}}},
		"git borrowed":  {func(t *testing.T, dir string) { rewrite(t, dir, ".git/objects/info/alternates", "x\n") }, &allowlist.TamperError{Changed: []string{".git/objects/info/alternates"}}},
		"git works": {func(t *testing.T, dir string) {
			for _, name := range []string{".git/index", ".git/logs/HEAD", ".git/objects/ab/cdef", ".git/worktrees/w/index", ".git/modules/a/b/objects/ab/config"} {
				rewrite(t, dir, name, "changed\n")
			}
		}, nil},
		"a nested repository": {func(t *testing.T, dir string) { putFile(t, dir, "src/r/.git/config", "", 0o644) },
			&allowlist.TamperError{Added: []string{"src/r/.git", "src/r/.git/config"}}},
		"two at once": {func(t *testing.T, dir string) {
			rewrite(t, dir, "configs/safety.yaml", "off\n")
			putFile(t, dir, "go.mod", "module x\n", 0o644)
		}, &allowlist.TamperError{Added: []string{"go.mod"}, Changed: []string{"configs/safety.yaml"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
				dir := newFiles(t, sealedFiles)
				must(t, os.Symlink("sub/x", filepath.Join(dir, "configs/link")))
				tree := openTree(t, dir, o)
				m, err := p.Seal(tree)
				must(t, err)
				digest := m.Digest()
				c.change(t, dir)
				got, _ := errors.AsType[*allowlist.TamperError](m.Verify(tree))
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("Verify (-want +got):\n%s", diff)
				}
				again, err := p.Seal(tree)
				must(t, err)
				if (again.Digest() == digest) != (c.want == nil) {
					t.Error("the digest of the manifest does not tell the same as Verify")
				}
			})
		})
	}
}

// TestSealFailsClosed: what cannot be read is not sealed, and an empty manifest verifies nothing.
func TestSealFailsClosed(t *testing.T) {
	t.Parallel()
	dir := newFiles(t, sealedFiles)
	tree := openTree(t, dir, nil)
	if err := new(allowlist.Manifest).Verify(tree); err == nil {
		t.Error("the zero manifest verified a tree")
	}
	p := loadPolicy(t, treePolicyText)
	m, err := p.Seal(tree)
	must(t, err)
	if err := m.VerifyWithin(tree, nil, nil); err == nil {
		t.Error("a manifest of protected names proved the whole tree")
	}
	must(t, os.RemoveAll(dir))
	if err := m.Verify(tree); err == nil {
		t.Error("a tree that is gone was verified")
	}
	if os.Getuid() != 0 {
		dir := newFiles(t, sealedFiles)
		must(t, os.Chmod(filepath.Join(dir, "configs/sub/x"), 0))
		if _, err := p.Seal(openTree(t, dir, nil)); !errors.Is(err, os.ErrPermission) {
			t.Errorf("unreadable protected file: %v", err)
		}
	}
}

// TestVerifyWithin: the changed set must lie in plan and outputs.
func TestVerifyWithin(t *testing.T) {
	t.Parallel()
	p := loadPolicy(t, treePolicyText)
	outputs := []string{"out/", "src/*.log"}
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		want   *allowlist.TamperError
	}{
		"plan only": {func(*testing.T, string) {}, nil},
		"outputs": {func(t *testing.T, dir string) {
			putFile(t, dir, "out/a/b", "b\n", 0o644)
			putFile(t, dir, "src/t.log", "", 0o600)
		}, nil},
		"mutable surface":  {func(t *testing.T, dir string) { putFile(t, dir, "src/other", "o\n", 0o644) }, &allowlist.TamperError{Added: []string{"src/other"}}},
		"planned again":    {func(t *testing.T, dir string) { putFile(t, dir, "src/a.go", "evil\n", 0o644) }, &allowlist.TamperError{Changed: []string{"src/a.go"}}},
		"deleted returns":  {func(t *testing.T, dir string) { putFile(t, dir, "src/gone", "evil\n", 0o644) }, &allowlist.TamperError{Changed: []string{"src/gone"}}},
		"protected output": {func(t *testing.T, dir string) { putFile(t, dir, "out/Makefile", "", 0o644) }, &allowlist.TamperError{Added: []string{"out/Makefile"}}},
		"output is a link": {func(t *testing.T, dir string) { must(t, os.Symlink("x", filepath.Join(dir, "src/l.log"))) }, &allowlist.TamperError{Added: []string{"src/l.log"}}},
		"empty directory":  {func(t *testing.T, dir string) { must(t, os.Mkdir(filepath.Join(dir, "src/e"), 0o755)) }, &allowlist.TamperError{Added: []string{"src/e"}}},
		"protected":        {func(t *testing.T, dir string) { rewrite(t, dir, "configs/safety.yaml", "no\n") }, &allowlist.TamperError{Changed: []string{"configs/safety.yaml"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
				dir := newFiles(t, sealedFiles)
				putFile(t, dir, "src/gone", "g\n", 0o644)
				tree := openTree(t, dir, o)
				m, err := p.SealFull(tree)
				must(t, err)
				plan, err := p.Plan(tree, []allowlist.Edit{modify("src/a.go", "a\n", "b\n"), create("src/n/new", "n\n"), remove("src/gone", "g\n")})
				must(t, err)
				_, err = plan.Apply(t.Context())
				must(t, err)
				c.change(t, dir)
				got, _ := errors.AsType[*allowlist.TamperError](m.VerifyWithin(tree, plan, outputs))
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("VerifyWithin (-want +got):\n%s", diff)
				}
				if err := m.VerifyWithin(tree, plan, []string{"../x", "["}); err == nil {
					t.Error("a bad pattern was taken")
				}
			})
		})
	}
}

// TestSealLargeFile: a file larger than one buffer, and one that is exactly as large.
func TestSealLargeFile(t *testing.T) {
	t.Parallel()
	p := loadPolicy(t, treePolicyText)
	for _, size := range []int{64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20} {
		content := make([]byte, size)
		dir := newFiles(t, map[string]string{"configs/large": string(content), "src/a": ""})
		tree := openTree(t, dir, nil)
		m, err := p.Seal(tree)
		must(t, err)
		must(t, m.Verify(tree))
		content[size-1] = 1
		rewrite(t, dir, "configs/large", string(content))
		must(t, os.Chtimes(filepath.Join(dir, "configs/large"), time.Unix(1, 0), time.Unix(1, 0)))
		if err := m.Verify(tree); !errors.Is(err, allowlist.ErrTampered) {
			t.Errorf("size %d: %v", size, err)
		}
	}
}
