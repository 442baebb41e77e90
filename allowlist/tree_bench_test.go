// SPDX-License-Identifier: Apache-2.0

//go:build unix

package allowlist_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoseal/containment/allowlist"
)

// onlyHere is a directory on the file system of TMPDIR: a flush costs nothing in memory.
func onlyHere(b *testing.B, files map[string]string) string {
	b.Helper()
	dir := b.TempDir()
	for name, content := range files {
		putFile(b, dir, name, content, 0o644)
	}
	return dir
}

// BenchmarkOneFile writes 4 KiB into an existing file at depth 4, durably, and compares Apply with what a program
// without a guard does.
func BenchmarkOneFile(b *testing.B) {
	text := [2]string{strings.Repeat("a line\n", 585), strings.Repeat("b line\n", 585)}
	const name = "src/a/b/file"
	b.Run("Apply", func(b *testing.B) {
		p := loadPolicy(b, treePolicyText)
		tree := openTree(b, onlyHere(b, map[string]string{name: text[1]}), &allowlist.TreeOptions{Sync: true})
		i := 0
		for b.Loop() {
			b.StopTimer()
			plan, err := p.Plan(tree, []allowlist.Edit{modify(name, text[(i+1)%2], text[i%2])})
			must(b, err)
			b.StartTimer()
			_, err = plan.Apply(b.Context())
			must(b, err)
			i++
		}
	})
	b.Run("WriteFile", func(b *testing.B) {
		dir := onlyHere(b, map[string]string{name: text[1]})
		path := filepath.Join(dir, name)
		i := 0
		for b.Loop() {
			must(b, os.WriteFile(path, []byte(text[i%2]), 0o644))
			must(b, syncPath(path))
			must(b, syncPath(filepath.Dir(path)))
			i++
		}
	})
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// BenchmarkFiftyFiles plans and applies edits of 50 files, without flushes.
func BenchmarkFiftyFiles(b *testing.B) {
	for _, portable := range []bool{false, true} {
		b.Run(fmt.Sprintf("portable=%v", portable), func(b *testing.B) {
			p := loadPolicy(b, treePolicyText)
			files := map[string]string{}
			for i := range 50 {
				files[fmt.Sprintf("src/d%d/f%d", i%7, i)] = numbered(100, "0")
			}
			o := &allowlist.TreeOptions{}
			if portable {
				allowlist.ForcePortable(o)
			}
			tree := openTree(b, onlyHere(b, files), o)
			mark := 0
			for b.Loop() {
				var edits []allowlist.Edit
				for name := range files {
					edits = append(edits, modify(name, numbered(100, fmt.Sprint(mark)), numbered(100, fmt.Sprint(mark+1))))
				}
				_, err := applyEdits(b, p, tree, edits...)
				must(b, err)
				mark++
			}
		})
	}
}

// BenchmarkFiftyRenames is what the fifty edits cost a program that replaces files without any check.
func BenchmarkFiftyRenames(b *testing.B) {
	dir := onlyHere(b, map[string]string{"src/a": ""})
	content := []byte(numbered(100, "0"))
	for b.Loop() {
		for i := range 50 {
			path := filepath.Join(dir, fmt.Sprintf("src/f%d", i))
			must(b, os.WriteFile(path+".tmp", content, 0o644))
			must(b, os.Rename(path+".tmp", path))
		}
	}
}

// BenchmarkSeal seals a tree of 5,000 files, of which some 700 are protected.
func BenchmarkSeal(b *testing.B) {
	files := map[string]string{}
	for i := range 5000 {
		name := fmt.Sprintf("src/d%d/e%d/file%d.go", i%10, i%100, i)
		if i%7 == 0 {
			name = fmt.Sprintf("vendor/d%d/e%d/file%d.go", i%10, i%100, i)
		}
		files[name] = numbered(100, "x")
	}
	p := loadPolicy(b, treePolicyText)
	tree := openTree(b, onlyHere(b, files), nil)
	b.Run("protected", func(b *testing.B) {
		for b.Loop() {
			_, err := p.Seal(tree)
			must(b, err)
		}
	})
	b.Run("full", func(b *testing.B) {
		for b.Loop() {
			_, err := p.SealFull(tree)
			must(b, err)
		}
	})
	b.Run("first", func(b *testing.B) { // nothing remembered
		for b.Loop() {
			b.StopTimer()
			p := loadPolicy(b, treePolicyText)
			b.StartTimer()
			_, err := p.Seal(tree)
			must(b, err)
		}
	})
}
