// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/evoseal/containment/internal/testenv"
	"github.com/evoseal/containment/rollback/rollbacktest"
)

// sources is a tree to copy from, so that the test does not depend on what this host's caches hold.
func sources(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a/x.go", "a/b/y.go", "c.go", "d/e/f/z.go"} {
		if err := os.MkdirAll(dir+"/"+name[:strings.LastIndex("/"+name, "/")], 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+name, []byte("package "+name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestPeersRestore: a figure of a peer that does something else would be worth nothing.
func TestPeersRestore(t *testing.T) {
	testenv.Need(t, "git")
	peers, missing := available()
	t.Logf("missing: %q", missing)
	for _, p := range peers {
		dir := t.TempDir()
		if _, err := makeTree(dir+"/tree", []string{sources(t)}, 40); err != nil {
			t.Fatal(err)
		}
		if err := p.start(t.Context(), dir+"/tree", dir+"/store"); err != nil {
			t.Fatal(err)
		}
		want := bytesOf(t, dir+"/tree")
		id, err := p.checkpoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		paths, err := regular(dir + "/tree")
		if err != nil {
			t.Fatal(err)
		}
		if err := edit(paths, 20, 7); err != nil {
			t.Fatal(err)
		}
		if got := bytesOf(t, dir+"/tree"); len(differing(want, got)) != 20 {
			t.Errorf("%s: the edit changed %d files, want 20", p.name(), len(differing(want, got)))
		}
		if err := p.restore(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if list := differing(want, bytesOf(t, dir+"/tree")); len(list) > 0 {
			t.Errorf("%s: after the restore differ %q", p.name(), list)
		}
	}
}

func bytesOf(t *testing.T, dir string) rollbacktest.Tree {
	t.Helper()
	tree, err := rollbacktest.Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// differing lists files with other bytes; peers do not all restore times.
func differing(want, got rollbacktest.Tree) (list []string) {
	for name, w := range want {
		if w.Sum != got[name].Sum {
			list = append(list, name)
		}
	}
	return list
}

// TestRun measures a tiny tree and looks whether each step of each peer has a figure.
func TestRun(t *testing.T) {
	testenv.Need(t, "git")
	peers, _ := available()
	b := &bench{dir: t.TempDir(), peers: peers, times: map[string]map[string][]float64{}}
	if err := b.prepare(t.Context(), []string{sources(t)}, 40); err != nil {
		t.Fatal(err)
	}
	if err := b.round(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := b.heap(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		for _, p := range peers {
			if _, copying := p.(*copies); copying && step == verifyAll || p.name() != "rollback" && step == heapPeak {
				continue
			}
			if len(b.times[step][p.name()]) == 0 {
				t.Errorf("%s: no figure of %s", p.name(), step)
			}
		}
	}
	var out bytes.Buffer
	b.print(&out)
	if lines := strings.Count(out.String(), "\n"); lines != 3+len(steps) {
		t.Errorf("the table has %d lines:\n%s", lines, out.String())
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 2}, 2}} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
}
