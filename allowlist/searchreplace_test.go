// SPDX-License-Identifier: Apache-2.0

package allowlist_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/allowlist"
)

var textFiles = fileMap{
	"f": "one\ntwo\nthree\n", "open": "one\ntwo", "crlf": "one\r\ntwo\r\n", "twice": "x\ny\nx\n", "runs": "a\na\na\n",
	"indent": "if x:\n    y = 1\n", "fence": "a\n=======\nb\n", "empty": "", "nfc": "caf\u00e9\n", "a b.txt": "q\n",
}

// block writes one block.
func block(old, new string) string {
	return "<<<<<<< SEARCH\n" + old + "=======\n" + new + ">>>>>>> REPLACE\n"
}

func TestParseSearchReplace(t *testing.T) {
	t.Parallel()
	const bad, conflict = allowlist.ErrPatchMalformed, allowlist.ErrConflict
	for _, c := range []struct {
		name, text string
		code       allowlist.Code
		detail     string // of a denial
		want       fileMap
	}{
		{"one match", "f\n" + block("two\n", "TWO\n"), "", "", fileMap{"f": "one\nTWO\nthree\n"}},
		{"delete lines", "f\n" + block("two\n", ""), "", "", fileMap{"f": "one\nthree\n"}},
		{"delete all", "f\n" + block("one\ntwo\nthree\n", ""), "", "", fileMap{"f": ""}},
		{"no match", "f\n" + block("four\n", "4\n"), conflict, "occur (0 times)", nil},
		{"two matches", "twice\n" + block("x\n", "z\n"), conflict, "occurs 2 times", nil},
		{"matches that overlap", "runs\n" + block("a\na\n", "b\n"), conflict, "occurs 2 times", nil},
		{"three matches", "runs\n" + block("a\n", "b\n"), conflict, "occurs 3 times", nil},
		{"indentation left out", "indent\n" + block("y = 1\n", "y = 2\n"), conflict, "whole lines", nil},
		{"trailing blank", "f\n" + block("two \n", "TWO\n"), conflict, "0 times", nil},
		{"other Unicode form", "nfc\n" + block("cafe\u0301\n", "x\n"), conflict, "0 times", nil},
		{"elision", "f\n" + block("one\n...\nthree\n", "x\n"), conflict, "0 times", nil},
		{"CRLF file, LF block", "crlf\n" + block("two\n", "TWO\n"), conflict, "", nil},
		{"CRLF file, CRLF lines", "crlf\n" + block("two\r\n", "TWO\r\n"), "", "", fileMap{"crlf": "one\r\nTWO\r\n"}},
		{"CRLF text", strings.ReplaceAll("f\n"+block("two\n", "2\n"), "\n", "\r\n"), bad, "line 1", nil},
		{"no final newline in the file", "open\n" + block("two\n", "2\n"), conflict, "does not end with a newline", nil},
		{"before the open line", "open\n" + block("one\n", "1\n"), "", "", fileMap{"open": "1\ntwo"}},
		{"no final newline in the text", strings.TrimSuffix("f\n"+block("two\n", "2\n"), "\n"), "", "", fileMap{"f": "one\n2\nthree\n"}},
		{"two blocks in order", "f\n" + block("two\n", "2\n") + "\n" + block("2\nthree\n", "3\n"), "", "", fileMap{"f": "one\n3\n"}},
		{"second block on old text", "f\n" + block("two\n", "2\n") + block("two\n", "3\n"), conflict, "line 7", nil},
		{"two files", "f\n" + block("two\n", "2\n") + "\n\ntwice\n" + block("y\n", "z\n"), "", "",
			fileMap{"f": "one\n2\nthree\n", "twice": "x\nz\nx\n"}},
		{"one file named twice", "f\n" + block("two\n", "2\n") + "f\n" + block("one\n", "1\n"), "", "", fileMap{"f": "1\n2\nthree\n"}},
		{"create", "new/file\n" + block("", "x\n"), "", "", fileMap{"new/file": "x\n"}},
		{"create empty", "new\n" + block("", ""), "", "", fileMap{"new": ""}},
		{"create what exists", "f\n" + block("", "x\n"), conflict, "exists", nil},
		{"create what exists, empty", "empty\n" + block("", "x\n"), conflict, "exists", nil},
		{"create, not alone", "new\n" + block("", "x\n") + block("x\n", "y\n"), bad, "line 1", nil},
		{"create, then edit", "new\n" + block("", "x\n") + "new\n" + block("x\n", "y\n"), conflict, "", nil},
		{"edit, then create", "f\n" + block("two\n", "2\n") + "f\n" + block("", "x\n"), conflict, "exists", nil},
		{"missing", "none\n" + block("x\n", "y\n"), conflict, "no such file", nil},
		{"space in the name", "a b.txt\n" + block("q\n", "r\n"), "", "", fileMap{"a b.txt": "r\n"}},
		{"fence with a blank is content", "f\n" + block("two\n", "======= \n"), "", "", fileMap{"f": "one\n======= \nthree\n"}},
		{"middle fence in old", "fence\n" + block("a\n=======\nb\n", "c\n"), bad, "line 6", nil},
		{"middle fence in new", "f\n" + block("two\n", "=======\n"), bad, "line 5", nil},
		{"first fence in old", "f\n" + block("<<<<<<< SEARCH\n", "x\n"), bad, "line 3", nil},
		{"first fence in new", "f\n" + block("two\n", "<<<<<<< SEARCH\n"), bad, "line 5", nil},
		{"last fence in old", "f\n" + block(">>>>>>> REPLACE\n", "x\n"), bad, "line 3", nil},
		{"last fence in new", "f\n" + block("two\n", ">>>>>>> REPLACE\nx\n"), bad, "line 6", nil},
		{"no name", block("two\n", "2\n"), bad, "line 1", nil},
		{"empty line behind the name", "f\n\n" + block("two\n", "2\n"), bad, "line 1", nil},
		{"prose first", "Here is the change:\n\nf\n" + block("two\n", "2\n"), bad, "line 1", nil},
		{"prose last", "f\n" + block("two\n", "2\n") + "Done.\n", bad, "line 7", nil},
		{"prose between blocks", "f\n" + block("two\n", "2\n") + "and\n" + block("one\n", "1\n"), conflict, "no such file", nil},
		{"fenced", "```\nf\n" + block("two\n", "2\n") + "```\n", bad, "line 1", nil},
		{"never closed", "f\n<<<<<<< SEARCH\ntwo\n=======\n2\n", bad, "line 6", nil},
		{"no middle", "f\n<<<<<<< SEARCH\ntwo\n>>>>>>> REPLACE\n", bad, "line 4", nil},
		{"short fence", "f\n<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE\n", bad, "line 1", nil},
		{"indented fence", "f\n <<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE\n", bad, "line 1", nil},
		{"only empty lines", "\n\n", bad, "line 1", nil},
		{"name in backticks", "`f`\n" + block("two\n", "2\n"), bad, "line 1", nil},
		{"name in quotes", "\"f\"\n" + block("two\n", "2\n"), bad, "line 1", nil},
		{"name behind a comment sign", "# f\n" + block("two\n", "2\n"), bad, "line 1", nil},
		{"name behind slashes", "// f\n" + block("two\n", "2\n"), bad, "line 1", nil},
		{"name with a colon", "f:\n" + block("two\n", "2\n"), bad, "line 1", nil},
		{"name with a blank", "f \n" + block("two\n", "2\n"), allowlist.ErrPathDisguised, "", nil},
		{"name with dots", "src/../f\n" + block("two\n", "2\n"), allowlist.ErrPathEscapes, "", nil},
		{"absolute name", "/f\n" + block("two\n", "2\n"), allowlist.ErrPathEscapes, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			edits, err := allowlist.ParseSearchReplace([]byte(c.text), textFiles)
			wantParsed(t, textFiles, edits, err, c.code, c.detail, c.want)
		})
	}
}

// wantParsed asserts a denial with a code and a part of its detail, or exactly these changed files.
func wantParsed(t *testing.T, base fileMap, edits []allowlist.Edit, err error, code allowlist.Code, detail string, want fileMap) {
	t.Helper()
	if code != "" {
		wantDenied(t, edits, err, code)
		denied, _ := errors.AsType[*allowlist.DeniedError](err)
		if got := denied.Decisions[0].Detail; !strings.Contains(got, detail) {
			t.Errorf("detail %q, want %q in it", got, detail)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	got := fileMap{}
	for path, content := range base.after(t, edits) {
		if was, existed := base[path]; !existed || was != content {
			got[path] = content
		}
	}
	for path := range base {
		if _, exists := base.after(t, edits)[path]; !exists {
			got[path] = "(deleted)"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(edits) != len(want) {
		t.Errorf("%d edits for %d files", len(edits), len(want))
	}
}

// The typed form takes what the text cannot say: fences, parts of lines, a last line without a newline.
func TestReplacements(t *testing.T) {
	t.Parallel()
	r := func(path, old, new string) allowlist.Replacement {
		return allowlist.Replacement{Path: path, Old: []byte(old), New: []byte(new)}
	}
	for _, c := range []struct {
		name   string
		rs     []allowlist.Replacement
		code   allowlist.Code
		detail string
		want   fileMap
	}{
		{"fence", []allowlist.Replacement{r("fence", "=======\n", "<<<<<<< SEARCH\n")}, "", "", fileMap{"fence": "a\n<<<<<<< SEARCH\nb\n"}},
		{"open line", []allowlist.Replacement{r("open", "two", "2")}, "", "", fileMap{"open": "one\n2"}},
		{"part of a line", []allowlist.Replacement{r("f", "hre", "HRE")}, "", "", fileMap{"f": "one\ntwo\ntHREe\n"}},
		{"in order", []allowlist.Replacement{r("f", "one", "1"), r("twice", "y", "z"), r("f", "1\n", "")}, "", "",
			fileMap{"f": "two\nthree\n", "twice": "x\nz\nx\n"}},
		{"create", []allowlist.Replacement{r("new", "", "x")}, "", "", fileMap{"new": "x"}},
		{"create twice", []allowlist.Replacement{r("new", "", "x"), r("new", "", "y")}, allowlist.ErrConflict, "replacement 2", nil},
		{"several", []allowlist.Replacement{r("f", "e", "E")}, allowlist.ErrConflict, "replacement 1: the old text occurs 3 times", nil},
		{"name is any path", []allowlist.Replacement{r("#f", "", "x")}, "", "", fileMap{"#f": "x"}},
		{"bad name", []allowlist.Replacement{r("f", "one", "1"), r("../f", "one", "1")}, allowlist.ErrPathEscapes, "replacement 2", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			edits, err := allowlist.Replacements(c.rs, textFiles)
			wantParsed(t, textFiles, edits, err, c.code, c.detail, c.want)
		})
	}
	if edits, err := allowlist.Replacements(nil, textFiles); edits != nil || !errors.Is(err, allowlist.ErrPatchMalformed) {
		t.Errorf("no replacement: %v, %v", edits, err)
	}
}

// No panic; what is accepted is what the typed form makes of the same blocks; and nothing of a denial quotes the file.
func FuzzSearchReplace(f *testing.F) {
	f.Add([]byte("f\n"+block("two\n", "TWO\n")), []byte("one\ntwo\n"))
	f.Add([]byte("f\n"+block("", "x\n")), []byte(""))
	f.Add([]byte("f\n"+block("a\n", "=======")+"\ng\n"+block("", "")), []byte("a\r\n"))
	for _, c := range readPatchCases(f).Cases {
		f.Add([]byte(c.Patch), []byte("x"))
	}
	f.Fuzz(func(t *testing.T, text, content []byte) {
		base := fileMap{"f": string(content)}
		edits, err := allowlist.ParseSearchReplace(text, base)
		if err != nil {
			if _, ok := errors.AsType[*allowlist.DeniedError](err); !ok || edits != nil {
				t.Fatalf("edits %v, error %v", edits, err)
			}
			return
		}
		base.after(t, edits)
		for _, e := range edits {
			if !bytes.Contains(text, []byte(e.Path+"\n<<<<<<< SEARCH\n")) {
				t.Errorf("an edit of %q, which no name line names", e.Path)
			}
			if again, err := allowlist.Replacements([]allowlist.Replacement{{Path: e.Path, Old: nil, New: e.Content}}, fileMap{}); err != nil ||
				again[0].Path != e.Path {
				t.Errorf("the path %q is refused the second time: %v", e.Path, err)
			}
		}
	})
}
