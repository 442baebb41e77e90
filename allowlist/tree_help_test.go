// SPDX-License-Identifier: Apache-2.0

//go:build unix

package allowlist_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/evoseal/containment/allowlist"
	"github.com/google/go-cmp/cmp"
)

// treePolicy is a policy with room for every test that is not about the policy.
const treePolicyText = `
version: 1
surface:
  - {paths: ["src/**"], ops: [modify, create, delete]}
protect: [configs/**]
gate: []
limits: {files: 200, created: 200, deleted: 200, changed_lines: 100000, file_bytes: 8MiB, total_bytes: 64MiB}
`

func loadPolicy(t testing.TB, text string) *allowlist.Policy {
	t.Helper()
	p, err := allowlist.Load(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// eachWalk runs a test once for each way to walk a tree.
func eachWalk(t *testing.T, f func(t *testing.T, o *allowlist.TreeOptions)) {
	t.Run("native", func(t *testing.T) { t.Parallel(); f(t, &allowlist.TreeOptions{}) })
	t.Run("portable", func(t *testing.T) {
		t.Parallel()
		o := &allowlist.TreeOptions{}
		allowlist.ForcePortable(o)
		f(t, o)
	})
}

// newFiles makes a tree of files; the umask does not matter.
func newFiles(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := fastDir(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		putFile(t, dir, name, files[name], 0o644)
	}
	return dir
}

// fastDir is a temporary directory in memory where there is one: the tests make some ten thousand files.
func fastDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "allowlist-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	must(t, os.Chmod(dir, 0o755))
	return dir
}

func putFile(t testing.TB, dir, name, content string, mode fs.FileMode) {
	t.Helper()
	path := filepath.Join(dir, name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o600))
	must(t, os.Chmod(path, mode))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openTree(t testing.TB, dir string, o *allowlist.TreeOptions) *allowlist.Tree {
	t.Helper()
	tree, err := allowlist.OpenTree(dir, o)
	must(t, err)
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return tree
}

// readTree describes every entry below dir: type, mode and content or link target.
func readTree(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrPermission) {
				data = fmt.Appendf(nil, "unreadable, %d bytes", info.Size())
			} else if err != nil {
				return err
			}
			what += " " + string(data)
		case info.Mode().Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what += " -> " + target
		}
		rel, err := filepath.Rel(dir, path)
		found[filepath.ToSlash(rel)] = what
		return err
	}))
	return found
}

func wantTree(t testing.TB, dir string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, readTree(t, dir)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func create(path, content string) allowlist.Edit {
	return allowlist.Edit{Op: allowlist.Create, Path: path, Content: []byte(content)}
}

func modify(path, base, content string) allowlist.Edit {
	return allowlist.Edit{Op: allowlist.Modify, Path: path, Content: []byte(content), Base: allowlist.Sum([]byte(base))}
}

func remove(path, base string) allowlist.Edit {
	return allowlist.Edit{Op: allowlist.Delete, Path: path, Base: allowlist.Sum([]byte(base))}
}

// applyEdits plans and applies.
func applyEdits(t testing.TB, p *allowlist.Policy, tree *allowlist.Tree, edits ...allowlist.Edit) (*allowlist.Receipt, error) {
	t.Helper()
	plan, err := p.Plan(tree, edits)
	if err != nil {
		return nil, err
	}
	return plan.Apply(t.Context())
}

// codes returns path and code of each denial.
func codes(t testing.TB, err error) []string {
	t.Helper()
	denied, ok := errors.AsType[*allowlist.DeniedError](err)
	if !ok {
		t.Fatalf("got %v, want a *DeniedError", err)
	}
	var list []string
	for _, d := range denied.Decisions {
		list = append(list, d.Path+" "+string(d.Code))
	}
	return list
}

// listenAt makes a socket. The path can be longer than an address may be, so it is reached by a short link.
func listenAt(t testing.TB, path string) {
	t.Helper()
	short, err := os.MkdirTemp("", "s")
	must(t, err)
	defer os.RemoveAll(short)
	must(t, os.Symlink(filepath.Dir(path), filepath.Join(short, "d")))
	l, err := net.Listen("unix", filepath.Join(short, "d", filepath.Base(path)))
	must(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	must(t, l.Close())
}

func numbered(n int, mark string) string {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "%s %d\n", mark, i)
	}
	return b.String()
}
