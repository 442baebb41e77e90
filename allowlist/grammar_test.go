// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoseal/containment/internal/testenv"
)

func TestCheckPath(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 255)
	cases := []struct {
		path string
		want Code
	}{
		{"a", ""}, {"a/b.c/d", ""}, {long + "/" + long, ""}, {"a b/c  d", ""}, {"[id]/(x)/{y}", ""}, {"...x", ""}, {"a..b", ""},
		{"~a/b", ErrPathEscapes}, {"a/~b", ""}, {"a~b", ""}, {"abcdefg~1", ""}, {"abcdef~1", ErrPathDisguised}, {"a/~1", ErrPathDisguised},
		{"a~", ""}, {"a~~1", ErrPathDisguised}, {"日本/한국.txt", ""}, {"a/é", ""}, {"a/e\u0301", ErrPathDisguised},
		{"", ErrPathInvalid}, {strings.Repeat("a/", 2048) + "a", ErrPathInvalid}, {strings.Repeat("a/", 2047) + "a", ""},
		{long + "a", ErrPathInvalid}, {"a\xffb", ErrPathInvalid}, {"/\xff", ErrPathInvalid}, {"/a", ErrPathEscapes},
		{"~", ErrPathEscapes}, {`a\b`, ErrPathEscapes}, {"a\\\x00", ErrPathEscapes}, {"a\x00", ErrPathInvalid},
		{"a\x7f", ErrPathInvalid}, {"a\u0085b", ErrPathInvalid}, {"a\u200b\x00", ErrPathDisguised}, {"a\x00\u200b", ErrPathInvalid},
		{"a\u202eb", ErrPathDisguised}, {"a\u00adb", ErrPathDisguised}, {"a\u034fb", ErrPathDisguised}, {"a\u3164b", ErrPathDisguised},
		{"a\U000e0101", ErrPathDisguised}, {"a\U000e0041", ErrPathDisguised}, {"a\ue000", ErrPathDisguised}, {"a\U000f0000", ErrPathDisguised},
		{"a\u00a0b", ErrPathDisguised}, {"a\u3000b", ErrPathDisguised}, {"a\u2028b", ErrPathDisguised}, {"a\u1680b", ErrPathDisguised},
		{"a//b", ErrPathInvalid}, {"a/", ErrPathInvalid}, {".", ErrPathEscapes}, {"a/./b", ErrPathEscapes}, {"a/..", ErrPathEscapes},
		{"../a//b", ErrPathEscapes}, {"a//../b", ErrPathInvalid}, {".al-", ErrPathInvalid}, {"a/.AL-x/b", ErrPathInvalid},
		{".al", ""}, {"x.al-", ""}, {".alx-", ""}, {"-a", ErrPathDisguised}, {"a-/-b", ErrPathDisguised}, {"a-", ""},
		{" a", ErrPathDisguised}, {"a /b", ErrPathDisguised}, {"a./b", ErrPathDisguised}, {"a/...", ErrPathDisguised},
		{"a:b", ErrPathDisguised}, {"a*", ErrPathDisguised}, {"a?", ErrPathDisguised}, {`a"`, ErrPathDisguised}, {"a<", ErrPathDisguised},
		{"a>", ErrPathDisguised}, {"a|b", ErrPathDisguised}, {"CON", ErrPathDisguised}, {"x/nul.tar.gz", ErrPathDisguised},
		{"prn .c", ErrPathDisguised}, {"Conin$", ErrPathDisguised}, {"conout$.x", ErrPathDisguised}, {"com1", ErrPathDisguised},
		{"LPT9.h", ErrPathDisguised}, {"com\u00b9", ErrPathDisguised}, {"lpt\u00b3.x", ErrPathDisguised}, {"com0", ""}, {"com10", ""},
		{"com", ""}, {"console", ""}, {"auxiliary.go", ""}, {"x.aux", ""}, {"xnul", ""}, {"com\u2074", ""},
	}
	for _, c := range cases {
		got, detail := checkPath(c.path)
		if got != c.want {
			t.Errorf("checkPath(%+q) = %q (%s), want %q", c.path, got, detail, c.want)
		}
		if (got == "") != (detail == "") {
			t.Errorf("checkPath(%+q): code %q with detail %q", c.path, got, detail)
		}
	}
}

// FuzzCheckPath: what is accepted names one file below the root, in one spelling.
func FuzzCheckPath(f *testing.F) {
	for _, seed := range []string{"src/a.go", "../a", "a//b", "a/b/", "~a", "a\\b", "é", "e\u0301", "\u2126", "a/\xff", "/", "con.x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, p string) {
		code, _ := checkPath(p)
		if again, _ := checkPath(p); again != code {
			t.Fatalf("%+q: %q, then %q", p, code, again)
		}
		if code != "" {
			return
		}
		if !filepath.IsLocal(filepath.FromSlash(p)) || path.Clean(p) != p || !fs.ValidPath(p) {
			t.Errorf("%+q is accepted, and is not local and clean", p)
		}
		for c := range strings.SplitSeq(p, "/") {
			if code, _ := checkPath(c); code != "" && c[0] != '~' {
				t.Errorf("%+q is accepted, and its component %+q is %q", p, c, code)
			}
		}
	})
}

// moduleDirs are the directories of the modules of this build, whichever they are: repositories of other people.
func moduleDirs(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{if not .Main}}{{.Dir}}{{end}}", "all").Output()
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for line := range strings.Lines(string(out)) {
		if dir := strings.TrimSpace(line); dir != "" {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// TestGrammarAcceptsRealTrees: strictness that refuses real names would be switched off.
func TestGrammarAcceptsRealTrees(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "go-caches")
	defaults, err := defaultRules()
	if err != nil {
		t.Fatal(err)
	}
	set := compileProtection(defaults.rules)
	files, protected, trees := 0, map[string]int{}, 0
	for _, dir := range moduleDirs(t) {
		before := files
		err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			rel, err := filepath.Rel(dir, name)
			if err != nil {
				return err
			}
			rel = filepath.ToSlash(rel)
			files++
			if code, detail := checkPath(rel); code != "" {
				t.Errorf("%s: %+q is refused: %s (%s)", filepath.Base(dir), rel, code, detail)
			}
			if r := set.match(foldKey(rel)); r >= 0 {
				protected[set.rules[r].rule.Class]++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if files > before {
			trees++
		}
	}
	t.Logf("%d files of %d modules, none refused; the default list protects, by class: %v", files, trees, protected)
	if trees < 5 || files < 1000 {
		t.Errorf("only %d files of %d modules: run go mod download", files, trees)
	}
}
