// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
)

var matchPatterns = []string{
	"__pycache__", "*.pyc", "node_modules/.cache", "a*", "*", "?", "[ab]", "{x,y}", "**/deep", "a/**", "a/*/c", `\*`,
	"*.tar.*", "é",
}

// TestMatch compares the matcher with the library, one pattern after the other.
func TestMatch(t *testing.T) {
	t.Parallel()
	paths := []string{
		"a", "b", "x", "é", "*", "a/b", "a/b/c", "a/x/c", "deep", "a/deep", "a/b/deep", "m.pyc", "d/m.pyc", ".pyc",
		"__pycache__",
		"d/__pycache__", "node_modules/.cache", "d/node_modules/.cache", ".cache", "bad\xff", "\xff.pyc", "f.tar.gz", "pyc",
	}
	for _, p := range matchPatterns {
		m, err := NewMatcher([]string{p})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			name := path
			if !strings.Contains(p, "/") {
				name = path[strings.LastIndexByte(path, '/')+1:]
			}
			if want := doublestar.MatchUnvalidated(p, name); m.Match(path) != want {
				t.Errorf("%q, %q: got %v", p, path, !want)
			}
		}
	}
}

func TestPatternsThatMatchNothingAreRefused(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"", "/abs", "dir/", "./a", "a/../b", "..", ".", "a//b", "[", "a\x00", "{a"} {
		if _, err := NewMatcher([]string{"ok", p}); err == nil || !strings.Contains(err.Error(), "pattern") {
			t.Errorf("%q: %v", p, err)
		}
	}
	if m := (*Matcher)(nil); m.Match("a") || m.Patterns() != nil {
		t.Error("no matcher excludes something")
	}
}

func FuzzMatch(f *testing.F) {
	for _, p := range matchPatterns {
		f.Add(p, "a/b/c.pyc")
	}
	f.Fuzz(func(t *testing.T, p, path string) {
		m, err := NewMatcher([]string{p})
		if err != nil || path == "" || strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
			return
		}
		name := path
		if !strings.Contains(p, "/") {
			name = path[strings.LastIndexByte(path, '/')+1:]
		}
		if want := doublestar.MatchUnvalidated(p, name); m.Match(path) != want {
			t.Errorf("%q, %q: got %v", p, path, !want)
		}
	})
}
