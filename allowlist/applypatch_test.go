// SPDX-License-Identifier: Apache-2.0

package allowlist_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/evoseal/containment/allowlist"
)

var beginFiles = fileMap{
	"f": "one\ntwo\nthree\n", "open": "one\ntwo", "crlf": "one\r\ntwo\r\n", "empty": "", "line": "x\n",
	"twice": "func a\n\tx\nfunc b\n\tx\nend\n", "runs": "a\na\na\n", "blank": "a\n\nb\n",
}

func begin(body string) string { return "*** Begin Patch\n" + body + "*** End Patch\n" }

func update(path, hunks string) string { return begin("*** Update File: " + path + "\n" + hunks) }

func TestParseApplyPatch(t *testing.T) {
	t.Parallel()
	const bad, conflict = allowlist.ErrPatchMalformed, allowlist.ErrConflict
	for _, c := range []struct {
		name, text string
		code       allowlist.Code
		detail     string
		want       fileMap
	}{
		{"update", update("f", "@@\n one\n-two\n+TWO\n"), "", "", fileMap{"f": "one\nTWO\nthree\n"}},
		{"no match", update("f", "@@\n-four\n+4\n"), conflict, "0 times", nil},
		{"two matches", update("twice", "@@\n-\tx\n+\ty\n"), conflict, "2 times", nil},
		{"matches that overlap", update("runs", "@@\n-a\n-a\n+b\n"), conflict, "2 times", nil},
		{"anchor", update("twice", "@@ func b\n-\tx\n+\ty\n"), "", "", fileMap{"twice": "func a\n\tx\nfunc b\n\ty\nend\n"}},
		{"anchor does not narrow enough", update("twice", "@@ func a\n-\tx\n+\ty\n"), conflict, "2 times", nil},
		{"anchor is a part of a line", update("twice", "@@ func\n-\tx\n+\ty\n"), conflict, "anchor line does not occur", nil},
		{"anchor without its blanks", update("twice", "@@ x\n-func b\n+func c\n"), conflict, "anchor", nil},
		{"anchor twice", update("runs", "@@ a\n-a\n+b\n"), conflict, "anchor line occurs 3 times", nil},
		{"anchor is not part of the old lines", update("f", "@@ two\n-two\n+2\n"), conflict, "0 times", nil},
		{"anchor behind the hunk before", update("twice", "@@ func b\n-\tx\n+\ty\n@@ func a\n-\tx\n+\tz\n"), conflict, "line 6", nil},
		{"two hunks", update("f", "@@\n-one\n+1\n@@\n-three\n+3\n"), "", "", fileMap{"f": "1\ntwo\n3\n"}},
		{"hunks touch", update("f", "@@\n-one\n+1\n@@\n-two\n+2\n"), "", "", fileMap{"f": "1\n2\nthree\n"}},
		{"hunks out of order", update("f", "@@\n-three\n+3\n@@\n-one\n+1\n"), conflict, "line 6", nil},
		{"first hunk makes the second unique", update("runs", "@@\n-a\n-a\n-a\n+b\n@@\n-a\n+c\n"), conflict, "line 8", nil},
		{"end of file", update("f", "@@\n-three\n+3\n*** End of File\n"), "", "", fileMap{"f": "one\ntwo\n3\n"}},
		{"end of file, not the end", update("f", "@@\n-two\n+2\n*** End of File\n"), conflict, "lines follow", nil},
		{"end of file, twice in the file", update("runs", "@@\n-a\n+b\n*** End of File\n"), conflict, "3 times", nil},
		{"append", update("f", "@@\n+four\n*** End of File\n"), "", "", fileMap{"f": "one\ntwo\nthree\nfour\n"}},
		{"append behind an anchor", update("f", "@@ three\n+four\n"), "", "", fileMap{"f": "one\ntwo\nthree\nfour\n"}},
		{"insert nowhere", update("f", "@@\n+four\n"), conflict, "fits in 4 places", nil},
		{"insert behind an anchor", update("f", "@@ two\n+four\n"), conflict, "fits in 2 places", nil},
		{"fill an empty file", update("empty", "@@\n+x\n+y\n"), "", "", fileMap{"empty": "x\ny"}},
		{"hunk behind the end", update("f", "@@\n-three\n+3\n*** End of File\n@@\n-one\n+1\n"), bad, "line 7", nil},
		{"final newline kept away", update("open", "@@\n-two\n+2\n"), "", "", fileMap{"open": "one\n2"}},
		{"final newline kept", update("line", "@@\n-x\n+y\n+z\n"), "", "", fileMap{"line": "y\nz\n"}},
		{"append to an open file", update("open", "@@\n two\n+three\n"), "", "", fileMap{"open": "one\ntwo\nthree"}},
		{"all lines removed", update("line", "@@\n-x\n"), "", "", fileMap{"line": ""}},
		{"empty context line", update("blank", "@@\n a\n \n-b\n+B\n"), "", "", fileMap{"blank": "a\n\nB\n"}},
		{"empty line without its space", update("blank", "@@\n a\n\n-b\n+B\n"), bad, "line 5", nil},
		{"CRLF content", update("crlf", "@@\n-two\r\n+2\r\n"), "", "", fileMap{"crlf": "one\r\n2\r\n"}},
		{"CRLF file, LF patch", update("crlf", "@@\n-two\n+2\n"), conflict, "0 times", nil},
		{"CRLF patch", strings.ReplaceAll(update("f", "@@\n-two\n+2\n"), "\n", "\r\n"), bad, "line 1", nil},
		{"trailing blank", update("f", "@@\n-two \n+2\n"), conflict, "0 times", nil},
		{"typographic quotes", update("f", "@@\n-\u201ctwo\u201d\n+2\n"), conflict, "0 times", nil},
		{"missing file", update("none", "@@\n-x\n+y\n"), conflict, "no such file", nil},
		{"hunk without @@", update("f", "-two\n+2\n"), bad, "line 3", nil},
		{"hunk without change", update("f", "@@\n one\n"), bad, "line 3", nil},
		{"two anchors", update("f", "@@ one\n@@ two\n-three\n+3\n"), bad, "line 3", nil},
		{"anchor without a blank", update("f", "@@one\n-two\n+2\n"), bad, "line 3", nil},
		{"empty anchor", update("f", "@@ \n-two\n+2\n"), bad, "line 3", nil},
		{"update without hunk", update("f", ""), bad, "line 3", nil},
		{"git marker", update("open", "@@\n-two\n+2\n\\ No newline at end of file\n"), bad, "line 6", nil},
		{"end of file alone", update("f", "@@\n*** End of File\n"), bad, "line 3", nil},
		{"move", update("f", "*** Move to: g\n@@\n-two\n+2\n"), bad, "line 3", nil},
		{"move behind the hunk", update("f", "@@\n-two\n+2\n*** Move to: g\n"), bad, "line 6", nil},
		{"add", begin("*** Add File: new\n+x\n+\n+*** End Patch\n"), "", "", fileMap{"new": "x\n\n*** End Patch\n"}},
		{"add nothing", begin("*** Add File: new\n"), "", "", fileMap{"new": ""}},
		{"add, a line without +", begin("*** Add File: new\n+x\ny\n"), bad, "line 4", nil},
		{"add what exists", begin("*** Add File: f\n+x\n"), conflict, "exists", nil},
		{"delete", begin("*** Delete File: f\n"), "", "", fileMap{"f": "(deleted)"}},
		{"delete with lines", begin("*** Delete File: f\n-one\n"), bad, "line 3", nil},
		{"delete what is missing", begin("*** Delete File: none\n"), conflict, "no such file", nil},
		{"move as two sections", begin("*** Delete File: f\n*** Add File: g\n+x\n"), "", "", fileMap{"f": "(deleted)", "g": "x\n"}},
		{"two sections for one path", begin("*** Delete File: f\n*** Add File: f\n+x\n"), conflict, "second section", nil},
		{"no section", begin(""), bad, "line 1", nil},
		{"no begin", "*** Update File: f\n@@\n-two\n+2\n*** End Patch\n", bad, "line 1", nil},
		{"no end", "*** Begin Patch\n*** Delete File: f\n", bad, "line 3", nil},
		{"no newline behind the end", strings.TrimSuffix(begin("*** Delete File: f\n"), "\n"), "", "", fileMap{"f": "(deleted)"}},
		{"text behind the end", begin("*** Delete File: f\n") + "\n", bad, "line 4", nil},
		{"second patch", begin("*** Delete File: f\n") + begin("*** Delete File: line\n"), bad, "line 4", nil},
		{"begin twice", "*** Begin Patch\n" + begin("*** Delete File: f\n"), bad, "line 2", nil},
		{"heredoc", "apply_patch <<'EOF'\n" + begin("*** Delete File: f\n") + "EOF\n", bad, "line 1", nil},
		{"fenced", "```\n" + begin("*** Delete File: f\n") + "```\n", bad, "line 1", nil},
		{"empty line between sections", begin("*** Delete File: f\n\n*** Delete File: line\n"), bad, "line 3", nil},
		{"unknown section", begin("*** Rename File: f\n"), bad, "line 2", nil},
		{"no name", begin("*** Delete File: \n"), allowlist.ErrPathInvalid, "", nil},
		{"name in backticks", begin("*** Delete File: `f`\n"), bad, "line 2", nil},
		{"name with dots", begin("*** Delete File: src/../f\n"), allowlist.ErrPathEscapes, "", nil},
		{"two blanks before the name", begin("*** Delete File:  f\n"), allowlist.ErrPathDisguised, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			edits, err := allowlist.ParseApplyPatch([]byte(c.text), beginFiles)
			wantParsed(t, beginFiles, edits, err, c.code, c.detail, c.want)
		})
	}
}

// No panic; an error is a denial; and what an update does not name stays: its lines are those of the file, in order,
// without the removed ones and with the added ones.
func FuzzApplyPatch(f *testing.F) {
	f.Add([]byte(update("f", "@@ one\n-two\n+2\n*** End of File\n")), []byte("one\ntwo"))
	f.Add([]byte(update("f", "@@\n+x\n")), []byte(""))
	f.Add([]byte(begin("*** Delete File: f\n*** Add File: g\n+x\n")), []byte("\n\n"))
	for _, c := range readPatchCases(f).Cases {
		f.Add([]byte(c.Patch), []byte("x"))
	}
	f.Fuzz(func(t *testing.T, patch, content []byte) {
		base := fileMap{"f": string(content)}
		edits, err := allowlist.ParseApplyPatch(patch, base)
		if err != nil {
			if _, ok := errors.AsType[*allowlist.DeniedError](err); !ok || edits != nil {
				t.Fatalf("edits %v, error %v", edits, err)
			}
			return
		}
		base.after(t, edits)
		for _, e := range edits {
			if e.Op != allowlist.Modify {
				continue
			}
			added, removed := strings.Count(string(patch), "\n+"), strings.Count(string(patch), "\n-")
			before, after := strings.Count(string(content), "\n"), strings.Count(string(e.Content), "\n")
			if after > before+added || after < before-removed-1 {
				t.Errorf("%d lines became %d, with %d added and %d removed at most", before, after, added, removed)
			}
			if len(content) > 0 && len(e.Content) > 0 && content[len(content)-1] == '\n' && e.Content[len(e.Content)-1] != '\n' {
				t.Errorf("the final newline is lost: %q to %q", content, e.Content)
			}
		}
	})
}
