// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoseal/containment/runaway"
)

// writeTree makes files; a text "-> x" is a link to x.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if target, ok := strings.CutPrefix(text, "-> "); ok && err == nil {
			err = os.Symlink(target, path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func treePrint(t *testing.T, dir string) runaway.Fingerprint {
	t.Helper()
	f, err := runaway.FingerprintTree(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFingerprintTree(t *testing.T) {
	t.Parallel()
	const source = "package a\n\nfunc f() int { return 1 } // why\n"
	long := strings.Repeat("x", 64<<10-1) + "\r\ny" // the line end lies across two reads
	base := map[string]string{"a.go": source, "d/b.txt": "one\ntwo\n", "l": "-> d", "bin": "\x00\r\n",
		"long": strings.ReplaceAll(long, "\r", "")}
	with := func(name, text string) map[string]string {
		m := map[string]string{}
		for n, s := range base {
			m[n] = s
		}
		if delete(m, name); text != "" {
			m[name] = text
		}
		return m
	}
	want := treePrint(t, writeTree(t, base))
	for name, files := range map[string]map[string]string{
		"the same":            base,
		"formatting":          with("a.go", "package   a\nfunc f()   int {return 1 } // why"),
		"line ends in Go":     with("a.go", strings.ReplaceAll(source, "\n", "\r\n")),
		"line ends in a text": with("d/b.txt", "one\r\ntwo\r\n"),
		"a long line":         with("long", long),
		"git":                 with(".git/HEAD", "ref: x"),
		"git of a worktree":   with("d/.git", "gitdir: x"),
	} {
		if got := treePrint(t, writeTree(t, files)); got != want {
			t.Errorf("%s: another fingerprint", name)
		}
	}
	for name, files := range map[string]map[string]string{
		"a comment":     with("a.go", strings.Replace(source, "why", "how", 1)),
		"a statement":   with("a.go", strings.Replace(source, "1", "2", 1)),
		"no Go":         with("a.go", "package a {"),
		"a text":        with("d/b.txt", "one\ntwo"),
		"a lone \\r":    with("d/b.txt", "one\rtwo\n"),
		"a binary":      with("bin", "\x00\n"),
		"a link":        with("l", "-> e"),
		"link and file": with("l", "d"),
		"a name":        with("d/c.txt", "one\ntwo\n"),
		"one less":      with("d/b.txt", ""),
	} {
		if got := treePrint(t, writeTree(t, files)); got == want {
			t.Errorf("%s: the same fingerprint", name)
		}
	}
	moved := writeTree(t, map[string]string{"x": "1", "y": "2"})
	if treePrint(t, moved) == treePrint(t, writeTree(t, map[string]string{"x": "2", "y": "1"})) {
		t.Error("contents are exchanged, and the fingerprint is the same")
	}
}

// TestFingerprintStaysInside: what a link leads to is not read, not even through the directory itself.
func TestFingerprintStaysInside(t *testing.T) {
	t.Parallel()
	outside := writeTree(t, map[string]string{"secret": "1"})
	dir := writeTree(t, map[string]string{"up": "-> " + outside, "f": "-> " + outside + "/secret", "loop": "-> ."})
	before := treePrint(t, dir)
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	if treePrint(t, dir) != before {
		t.Error("a file outside of the tree changes its fingerprint")
	}
}

func TestFingerprintRefused(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	deep := writeTree(t, map[string]string{strings.Repeat("d/", 130) + "f": "x"})
	for name, c := range map[string]struct {
		ctx context.Context
		dir string
	}{
		"cancelled": {cancelled, writeTree(t, map[string]string{"a": "b"})},
		"missing":   {t.Context(), filepath.Join(t.TempDir(), "none")},
		"deep":      {t.Context(), deep},
	} {
		if f, err := runaway.FingerprintTree(c.ctx, c.dir); !errors.Is(err, runaway.ErrNoFingerprint) || !f.IsZero() {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
}
