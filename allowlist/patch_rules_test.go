// SPDX-License-Identifier: Apache-2.0

package allowlist_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/allowlist"
)

// ruleFiles is the tree of the tests below.
var ruleFiles = fileMap{
	"f": "a\nb\nc\n", "sp ace": "a\n", "open": "a\nb", "empty": "", "twice": "x\ny\nx\ny\n",
	"n": "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "dash": "-- x\n", "b/f b/f": "a\n",
}

const (
	fHead = "diff --git a/f b/f\n"
	fFile = "--- a/f\n+++ b/f\n"
	fHunk = "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
	fDone = fHead + fFile + fHunk
	newX  = "diff --git a/x b/x\nnew file mode 100644\n"
)

// Every numbered rule of the patch grammar, from both sides.
func TestParsePatchRules(t *testing.T) {
	t.Parallel()
	const bad, conflict = allowlist.ErrPatchMalformed, allowlist.ErrConflict
	for _, c := range []struct {
		name, patch string
		code        allowlist.Code // empty: accepted
	}{
		// 1: nothing but sections
		{"1 plain", fDone, ""},
		{"1 NUL in a heading", strings.Replace(fDone, "+1,3 @@", "+1,3 @@ \x00", 1), bad},
		{"1 last newline missing", strings.TrimSuffix(fDone, "\n"), bad},
		{"1 empty line first", "\n" + fDone, bad},
		{"1 empty line last", fDone + "\n", bad},
		{"1 byte order mark", "\ufeff" + fDone, bad},
		{"1 fenced block", "```diff\n" + fDone + "```\n", bad},
		{"1 binary garbage", "\x7fELF\x02\x01\xff\xfe\n", bad},
		{"1 diff --cc", "diff --cc f\n", bad},
		{"1 Binary files differ", fHead + "Binary files a/f and b/f differ\n", bad},
		// 2: the git line
		{"2 two names", strings.Replace(fDone, "b/f", "b/g", 1), bad},
		{"2 other prefixes", "diff --git i/f w/f\n--- i/f\n+++ w/f\n" + fHunk, bad},
		{"2 swapped prefixes", "diff --git b/f a/f\n--- b/f\n+++ a/f\n" + fHunk, bad},
		{"2 no name", "diff --git a/ b/\n" + "new file mode 100644\n", bad},
		{"2 cut short", "diff --git \n", bad},
		{"2 one name", "diff --git a/f\n" + fFile + fHunk, bad},
		{"2 a quote in the name", "diff --git a/x\"y b/x\"y\nnew file mode 100644\n", bad},
		{"2 quoted", "diff --git \"a/f\" \"b/f\"\n" + fFile + fHunk, bad},
		{"2 trailing tab", "diff --git a/f b/f\t\n" + fFile + fHunk, bad},
		{"2 a name that looks like two", "diff --git a/b/f b/f b/b/f b/f\n--- a/b/f b/f\t\n+++ b/b/f b/f\t\n@@ -1 +1 @@\n-a\n+A\n", ""},
		// 3: header lines
		{"3 index alone", fHead + "index 1234567..89abcde 100644\n", bad},
		{"3 index and hunk", fHead + "index 1234567..89abcde 100644\n" + fFile + fHunk, ""},
		{"3 index twice", fHead + "index 12..34\nindex 12..34\n" + fFile + fHunk, bad},
		{"3 index after the file lines", fHead + fFile + "index 12..34\n" + fHunk, bad},
		{"3 index without names", fHead + "index ..\n" + fFile + fHunk, bad},
		{"3 index with text", fHead + "index zz..yy\n" + fFile + fHunk, bad},
		{"3 index mode with a space", fHead + "index 12..34 100644 \n" + fFile + fHunk, bad},
		{"3 new mode first", fHead + "new mode 100644\nold mode 100755\n", bad},
		{"3 mode after index", fHead + "index 12..34\nold mode 100644\nnew mode 100644\n" + fFile + fHunk, bad},
		{"3 similarity", fHead + "similarity index 90%\n" + fFile + fHunk, bad},
		{"3 dissimilarity", fHead + "dissimilarity index 90%\n" + fFile + fHunk, bad},
		{"3 rename to itself", fHead + "rename from f\nrename to f\n", bad},
		{"3 old rename form", fHead + "rename old f\nrename new g\n", bad},
		{"3 unknown", fHead + "mode change\n" + fFile + fHunk, bad},
		{"3 no effect", fHead, bad},
		{"3 equal modes, no hunk", fHead + "old mode 100644\nnew mode 100644\n", bad},
		{"3 equal modes and a hunk", fHead + "old mode 100644\nnew mode 100644\n" + fFile + fHunk, ""},
		{"3 old mode alone", fHead + "old mode 100644\n", bad},
		{"3 mode is text", "diff --git a/x b/x\nnew file mode rw\n", bad},
		{"3 mode is huge", "diff --git a/x b/x\nnew file mode 77777777777777\n", bad},
		{"3 created and deleted", "diff --git a/x b/x\ndeleted file mode 100644\nnew file mode 100644\n", bad},
		{"3 mode change of a new file", "diff --git a/x b/x\nold mode 100644\nnew mode 100644\nnew file mode 100644\n", bad},
		// 4: file lines
		{"4 only ---", fHead + "--- a/f\n" + fHunk, bad},
		{"4 only +++", fHead + "+++ b/f\n" + fHunk, bad},
		{"4 none", fHead + fHunk, bad},
		{"4 no hunk", fHead + fFile, bad},
		{"4 no hunk, then a section", fHead + fFile + fDone, bad},
		{"4 old null, no mode line", fHead + "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", bad},
		{"4 new null, no mode line", fHead + "--- a/f\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-b\n-c\n", bad},
		{"4 new file, no null", newX + "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+x\n", bad},
		{"4 deleted, no null", fHead + "deleted file mode 100644\n" + fFile + "@@ -1,3 +0,0 @@\n-a\n-b\n-c\n", bad},
		{"4 both null", newX + "--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+x\n", bad},
		{"4 tab, name without space", fHead + "--- a/f\t\n+++ b/f\n" + fHunk, bad},
		{"4 tab behind null", newX + "--- /dev/null\t\n+++ b/x\n@@ -0,0 +1 @@\n+x\n", bad},
		{"4 timestamp", fHead + "--- a/f\t2020-01-01\n+++ b/f\n" + fHunk, bad},
		{"4 two tabs", "diff --git a/sp ace b/sp ace\n--- a/sp ace\t\t\n+++ b/sp ace\n@@ -1 +1 @@\n-a\n+A\n", bad},
		{"4 one tab, one side", "diff --git a/sp ace b/sp ace\n--- a/sp ace\n+++ b/sp ace\t\n@@ -1 +1 @@\n-a\n+A\n", ""},
		{"4 create", newX + "index 0..1\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n", ""},
		{"4 create nothing", newX, ""},
		{"4 delete", fHead + "deleted file mode 100755\n--- a/f\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-b\n-c\n", ""},
		{"4 delete an empty file", "diff --git a/empty b/empty\ndeleted file mode 100644\n", ""},
		// 5: carriage returns
		{"5 git line", strings.Replace(fDone, "b/f\n", "b/f\r\n", 1), bad},
		{"5 inside the git line", "diff --git a/f\r b/f\r\n" + "new file mode 100644\n", bad},
		{"5 mode line", "diff --git a/x b/x\nnew file mode 100644\r\n", bad},
		{"5 index line", fHead + "index 12..34\r\n" + fFile + fHunk, bad},
		{"5 file line", fHead + "--- a/f\r\n+++ b/f\n" + fHunk, bad},
		{"5 hunk header", strings.Replace(fDone, "@@\n", "@@\r\n", 1), bad},
		{"5 marker", "diff --git a/open b/open\n--- a/open\n+++ b/open\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n\\ No newline at end of file\r\n", bad},
		{"5 content", newX + "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\r\n", ""},
		// 6: hunks
		{"6 heading", strings.Replace(fDone, "+1,3 @@", "+1,3 @@ func f() { // @@ -1 +1 @@", 1), ""},
		{"6 no old range", fHead + fFile + "@@ +1 @@\n+x\n", bad},
		{"6 three ranges", fHead + fFile + "@@@ -1 -1 +1 @@@\n+x\n", bad},
		{"6 sign", strings.Replace(fDone, "-1,3", "-+1,3", 1), bad},
		{"6 huge number", strings.Replace(fDone, "-1,3", "-1,99999999999999999999", 1), bad},
		{"6 line 0", strings.Replace(fDone, "-1,3 +1,3", "-0,3 +0,3", 1), bad},
		{"6 too few lines", strings.Replace(fDone, "-1,3 +1,3", "-1,4 +1,4", 1), bad},
		{"6 too many lines", strings.Replace(fDone, "-1,3 +1,3", "-1,2 +1,2", 1), bad},
		{"6 old count exceeded", strings.Replace(fDone, "-1,3 +1,3", "-1,2 +1,4", 1), bad},
		{"6 only context", fHead + fFile + "@@ -1,3 +1,3 @@\n a\n b\n c\n", bad},
		{"6 empty hunk", fHead + fFile + "@@ -1,0 +1,0 @@\n", bad},
		{"6 other first byte", strings.Replace(fDone, "-b", "!b", 1), bad},
		{"6 a tab for the space", strings.Replace(fDone, " a\n", "\ta\n", 1), bad},
		{"6 removed line like a header", "diff --git a/dash b/dash\n--- a/dash\n+++ b/dash\n@@ -1 +1 @@\n--- x\n+++ y\n", ""},
		{"6 added git line", newX + "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+diff --git a/f b/f\n+deleted file mode 100644\n", ""},
		{"6 empty context line", newX + "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+\n+x\n", ""},
		{"6 marker text", fHead + fFile + "@@ -3 +3 @@\n-c\n+C\n\\ Kein Zeilenumbruch am Dateiende.\n", bad},
		{"6 marker in the middle", fHead + fFile + "@@ -1,3 +1,3 @@\n-a\n\\ No newline at end of file\n-b\n-c\n+A\n+B\n+C\n", bad},
		{"6 marker twice", fHead + fFile + "@@ -3 +3 @@\n-c\n+C\n\\ No newline at end of file\n\\ No newline at end of file\n", bad},
		{"6 marker first", fHead + fFile + "@@ -3 +3 @@\n\\ No newline at end of file\n-c\n+C\n", bad},
		{"6 a hunk behind the marker", "diff --git a/n b/n\n--- a/n\n+++ b/n\n@@ -1 +1 @@\n-1\n+one\n\\ No newline at end of file\n@@ -9 +9 @@\n-9\n+nine\n", bad},
		{"6 new end marked", fHead + fFile + "@@ -3 +3 @@\n-c\n+C\n\\ No newline at end of file\n", ""},
		{"6 new end marked, lines follow", fHead + fFile + "@@ -2 +2 @@\n-b\n+B\n\\ No newline at end of file\n", conflict},
		{"6 two hunks", nPatch("@@ -1,2 +1,3 @@\n 1\n+x\n 2\n", "@@ -8,2 +9,2 @@\n 8\n-9\n+nine\n"), ""},
		{"6 descending", nPatch("@@ -8,2 +8,2 @@\n 8\n-9\n+nine\n", "@@ -1,2 +1,2 @@\n-1\n+x\n 2\n"), bad},
		{"6 overlapping", nPatch("@@ -1,3 +1,3 @@\n 1\n-2\n+x\n 3\n", "@@ -3,2 +3,2 @@\n 3\n-4\n+y\n"), bad},
		{"6 the same place twice", newX + "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n@@ -0,0 +2 @@\n+y\n", bad},
		{"6 new position alone is off", nPatch("@@ -1,2 +1,3 @@\n 1\n+x\n 2\n", "@@ -8,2 +8,2 @@\n 8\n-9\n+nine\n"), bad},
		{"6 new position of the first", fHead + fFile + strings.Replace(fHunk, "+1,3", "+2,3", 1), bad},
		// stage 3
		{"link", "diff --git a/x b/x\nnew file mode 120000\n", allowlist.ErrFileType},
		{"submodule", "diff --git a/x b/x\nnew file mode 160000\n", allowlist.ErrFileType},
		{"deleted link", fHead + "deleted file mode 120000\n--- a/f\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-b\n-c\n", allowlist.ErrFileType},
		{"link in the index line", fHead + "index 12..34 120000\n" + fFile + fHunk, allowlist.ErrFileType},
		{"seven digits", "diff --git a/x b/x\nnew file mode 0100644\n", allowlist.ErrFileType},
		{"setuid", "diff --git a/x b/x\nnew file mode 104755\n", allowlist.ErrFileType},
		{"executable in the index line", fHead + "index 12..34 100755\n" + fFile + fHunk, ""},
		{"executable lost", fHead + "old mode 100755\nnew mode 100644\n", allowlist.ErrMode},
		{"mode change and hunk", fHead + "old mode 100644\nnew mode 100755\n" + fFile + fHunk, allowlist.ErrMode},
		{"new mode alone", fHead + "new mode 100755\n", allowlist.ErrMode},
		{"index and new file differ", newX + "index 0..1 100755\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n", allowlist.ErrMode},
		{"type before mode", fHead + "old mode 100755\nnew mode 120000\n", allowlist.ErrFileType},
		{"mode before path", "diff --git a/../x b/../x\nnew file mode 100755\n", allowlist.ErrMode},
		{"device name", "diff --git a/aux b/aux\nnew file mode 100644\n", allowlist.ErrPathDisguised},
		{"long name", longName(5000), allowlist.ErrPathInvalid},
		// stage 4
		{"missing file", strings.ReplaceAll(fDone, "/f", "/none"), conflict},
		{"offset", fHead + fFile + "@@ -2,2 +2,2 @@\n a\n-b\n+B\n", conflict},
		{"behind the end", fHead + fFile + "@@ -4,1 +4,1 @@\n-d\n+D\n", conflict},
		{"base has no newline, patch has", "diff --git a/open b/open\n--- a/open\n+++ b/open\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n", conflict},
		{"base has a newline, patch has not", fHead + fFile + "@@ -3 +3 @@\n-c\n\\ No newline at end of file\n+C\n", conflict},
		{"part of a deletion", fHead + "deleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n", conflict},
		{"deletion without lines", fHead + "deleted file mode 100644\n", conflict},
		{"create what exists, empty", "diff --git a/empty b/empty\nnew file mode 100644\n", conflict},
		{"fill an empty file", "diff --git a/empty b/empty\n--- a/empty\n+++ b/empty\n@@ -0,0 +1 @@\n+x\n", ""},
		{"fill a file that is not empty", fHead + fFile + "@@ -0,0 +1 @@\n+x\n", conflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			edits, err := allowlist.ParsePatch([]byte(c.patch), ruleFiles)
			if c.code != "" {
				wantDenied(t, edits, err, c.code)
				return
			}
			if err != nil || len(edits) != 1 {
				t.Fatalf("edits %v, error %v", edits, err)
			}
			ruleFiles.after(t, edits)
		})
	}
}

func nPatch(hunks ...string) string {
	return "diff --git a/n b/n\n--- a/n\n+++ b/n\n" + strings.Join(hunks, "")
}

func longName(n int) string {
	name := strings.Repeat("x ", n/2)
	return "diff --git a/" + name + " b/" + name + "\nnew file mode 100644\n"
}

// A hunk without context: the library inserts before the line that git inserts after, and git itself moves such a hunk to
// the end of the file when it fits there.
func TestParsePatchWithoutContext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, hunk, want string }{
		{"append", "f", "@@ -3,0 +4 @@\n+d\n", "a\nb\nc\nd\n"},
		{"insert: fits the end too", "f", "@@ -1,0 +2 @@\n+d\n", ""},
		{"replace in the middle", "f", "@@ -2 +2 @@\n-b\n+B\n", "a\nB\nc\n"},
		{"replace, twin at the end", "twice", "@@ -2 +2 @@\n-y\n+Y\n", ""},
		{"replace the end", "twice", "@@ -4 +4 @@\n-y\n+Y\n", "x\ny\nx\nY\n"},
		{"append behind an open line", "open", "@@ -2,0 +3 @@\n+c\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			patch := strings.ReplaceAll("diff --git a/F b/F\n--- a/F\n+++ b/F\n", "F", c.file) + c.hunk
			edits, err := allowlist.ParsePatch([]byte(patch), ruleFiles)
			if c.want == "" {
				wantDenied(t, edits, err, allowlist.ErrConflict)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(edits[0].Content)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Every section that is refused is reported, and a refusal of one leaves no edit of another.
func TestParsePatchReportsAll(t *testing.T) {
	t.Parallel()
	patch := fDone +
		"diff --git a/z b/z\nnew file mode 120000\n" +
		"diff --git a/../y b/../y\nnew file mode 100644\n" +
		"diff --git a/x b/x\nnew file mode 100755\n" +
		fDone
	edits, err := allowlist.ParsePatch([]byte(patch), ruleFiles)
	denied, ok := errors.AsType[*allowlist.DeniedError](err)
	if !ok || edits != nil {
		t.Fatalf("edits %v, error %v", edits, err)
	}
	var got []string
	for _, d := range denied.Decisions {
		got = append(got, d.Path+" "+string(d.Code)+" "+d.Op.String())
	}
	want := []string{"../y path_escapes create", "f conflict modify", "x mode create", "z file_type create"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
