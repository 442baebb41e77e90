// SPDX-License-Identifier: Apache-2.0

package allowlist_test

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/internal/testenv"
)

// gitTree is a repository with one set of files, for comparison with what git makes of a patch.
type gitTree struct {
	t   testing.TB
	dir string
}

func newGitTree(t testing.TB) gitTree {
	t.Helper()
	g := gitTree{t, t.TempDir()}
	if out, err := g.git(nil, "init", "-q"); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	return g
}

// reset makes these the only files. One repository serves many patches: to make one costs more than to apply a patch.
func (g gitTree) reset(files fileMap) {
	g.t.Helper()
	old, err := os.ReadDir(g.dir)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, e := range old {
		if e.Name() != ".git" {
			if err := os.RemoveAll(filepath.Join(g.dir, e.Name())); err != nil {
				g.t.Fatal(err)
			}
		}
	}
	for path, content := range files {
		full := filepath.Join(g.dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			g.t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			g.t.Fatal(err)
		}
	}
}

// git runs git without any configuration but its own.
func (g gitTree) git(stdin []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(g.t.Context(), "git", append([]string{
		"-c", "core.autocrlf=false", "-c", "core.quotePath=off", "-c", "core.safecrlf=false"}, args...)...)
	cmd.Dir = g.dir
	cmd.Env = []string{"HOME=" + g.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C"}
	cmd.Stdin = bytes.NewReader(stdin)
	return cmd.CombinedOutput()
}

// files reads the work tree. Anything that is not a plain file without the executable bit shows as such.
func (g gitTree) files() fileMap {
	g.t.Helper()
	out := fileMap{}
	err := filepath.WalkDir(g.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" {
				return filepath.SkipDir
			}
			return nil
		}
		name, err := filepath.Rel(g.dir, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if mode := info.Mode(); mode&0o111 != 0 || !mode.IsRegular() {
			out[filepath.ToSlash(name)] = mode.String()
			return nil
		}
		content, err := os.ReadFile(path)
		out[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return out
}

// sameAsGit asserts that a patch that we accept does with git what it does here, or that git refuses it.
func sameAsGit(t testing.TB, tree func() gitTree, patch []byte, files fileMap) (ours, gits bool) {
	t.Helper()
	edits, err := allowlist.ParsePatch(patch, files)
	if err != nil {
		return false, false
	}
	want := files.after(t, edits)
	g := tree()
	g.reset(files)
	if _, err := g.git(patch, "apply", "-"); err != nil {
		return true, false
	}
	if diff := cmp.Diff(want, g.files()); diff != "" {
		t.Errorf("git (+) disagrees about\n%s\n%s", patch, diff)
	}
	return true, true
}

// same serves where one repository is used again.
func (g gitTree) same() gitTree { return g }

func TestParsePatchAgreesWithGit(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "git")
	cases, tree := readPatchCases(t), newGitTree(t)
	accepted := 0
	for _, c := range cases.Cases {
		ours, gits := sameAsGit(t, tree.same, []byte(c.Patch), cases.Base)
		if c.Allow && !(ours && gits) {
			t.Errorf("%s: accepted here %t, by git %t", c.ID, ours, gits)
		}
		if ours {
			accepted++
		}
	}
	if accepted == 0 {
		t.Error("no case was compared")
	}
}

// What git writes, with any amount of context, is accepted wherever git itself would take it back.
func TestParsePatchReadsWhatGitWrites(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "git")
	rnd := rand.New(rand.NewPCG(1, 2))
	tree := newGitTree(t)
	for range 40 {
		before, after := randomText(rnd, 12), randomText(rnd, 12)
		context := strconv.Itoa(1 + rnd.IntN(4))
		patch := tree.diff(before, after, "-U"+context)
		if len(patch) == 0 {
			continue
		}
		edits, err := allowlist.ParsePatch(patch, fileMap{"f": before})
		if err != nil {
			t.Fatalf("%v\n%s", err, patch)
		}
		if diff := cmp.Diff(after, string(edits[0].Content)); diff != "" {
			t.Fatalf("%s\n%s", diff, patch)
		}
	}
}

// diff returns a patch as callers are told to write it.
func (g gitTree) diff(before, after string, options ...string) []byte {
	g.t.Helper()
	path := filepath.Join(g.dir, "f")
	for i, content := range []string{before, after} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			g.t.Fatal(err)
		}
		if i > 0 {
			break
		}
		if out, err := g.git(nil, "add", "f"); err != nil {
			g.t.Fatalf("git add: %v: %s", err, out)
		}
	}
	patch, err := g.git(nil, append([]string{"diff", "--no-renames", "--no-ext-diff", "--no-color", "--src-prefix=a/",
		"--dst-prefix=b/"}, options...)...)
	if err != nil {
		g.t.Fatalf("git diff: %v: %s", err, patch)
	}
	return patch
}

// Patches of random form on files full of equal lines, where a hunk has many places to go: git looks for the nearest, we
// take the one that is named.
func TestRandomHunksAgreeWithGit(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "git")
	rnd := rand.New(rand.NewPCG(3, 4))
	compared, tree := 0, newGitTree(t)
	for range 30_000 {
		base := randomText(rnd, 6)
		patch := randomPatch(rnd, base)
		if ours, gits := sameAsGit(t, tree.same, []byte(patch), fileMap{"f": base}); ours && gits {
			compared++
		}
		if compared == 80 {
			return
		}
	}
	t.Errorf("only %d patches were compared", compared)
}

// randomText has few different lines, and sometimes no newline at its end.
func randomText(rnd *rand.Rand, most int) string {
	var b strings.Builder
	for range rnd.IntN(most + 1) {
		b.WriteString([]string{"a\n", "b\n", "\n", "a\r\n", "c\n"}[rnd.IntN(5)])
	}
	text := b.String()
	if rnd.IntN(4) == 0 {
		text = strings.TrimSuffix(text, "\n")
	}
	return text
}

// randomPatch makes hunks that mostly fit base, and then tells lies in their headers.
func randomPatch(rnd *rand.Rand, base string) string {
	lines := strings.SplitAfter(base, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var out strings.Builder
	out.WriteString("diff --git a/f b/f\n--- a/f\n+++ b/f\n")
	shift := 0
	for at := rnd.IntN(len(lines) + 1); at <= len(lines); at += 1 + rnd.IntN(3) {
		hunk, old, added := randomHunk(rnd, lines[at:])
		oldAt, newAt := at, at+shift
		if old > 0 {
			oldAt++
		}
		if added > 0 {
			newAt++
		}
		if rnd.IntN(8) == 0 {
			newAt += rnd.IntN(3)
		}
		out.WriteString("@@ -" + strconv.Itoa(oldAt) + "," + strconv.Itoa(old) + " +" + strconv.Itoa(newAt) + "," +
			strconv.Itoa(added) + " @@\n" + hunk)
		shift += added - old
		at += old
	}
	return out.String()
}

func randomHunk(rnd *rand.Rand, lines []string) (text string, old, added int) {
	var out strings.Builder
	write := func(kind byte, line string) {
		out.WriteByte(kind)
		out.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
	for range 1 + rnd.IntN(5) {
		kind := " -+"[rnd.IntN(3)]
		if kind == '+' {
			write('+', []string{"a\n", "b\n", "x\n", "x"}[rnd.IntN(4)])
			added++
			continue
		}
		if len(lines) == 0 {
			break
		}
		write(kind, lines[0])
		lines = lines[1:]
		old++
		if kind == ' ' {
			added++
		}
	}
	return out.String(), old, added
}

// FuzzParsePatch: no panic, and whatever is accepted means to git what it means here.
func FuzzParsePatch(f *testing.F) {
	testenv.Need(f, "git")
	cases := readPatchCases(f)
	for _, c := range cases.Cases {
		f.Add([]byte(c.Patch), "one\ntwo\nthree\n")
	}
	f.Add([]byte(fDone), "a\nb\nc\n")
	f.Add([]byte("diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+B\n"), "a\nb\nb\n")
	f.Fuzz(func(t *testing.T, patch []byte, content string) {
		if strings.Contains(content, "\x00") {
			return // no text file
		}
		sameAsGit(t, func() gitTree { return newGitTree(t) }, patch, fileMap{"f": content, "src/b.txt": content, "src/with space.txt": "one\ntwo\n"})
	})
}
