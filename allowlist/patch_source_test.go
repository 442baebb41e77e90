// SPDX-License-Identifier: Apache-2.0

package allowlist_test

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoseal/containment/allowlist"
)

// failing answers every read with one error.
type failing struct{ err error }

func (f failing) ReadFile(path string) ([]byte, error) {
	return nil, fmt.Errorf("read %q: %w", path, f.err)
}

// parsers are the four ways in, each with an input that modifies f and one that creates x.
var parsers = []struct {
	name           string
	modify, create func(allowlist.Source) ([]allowlist.Edit, error)
}{
	{"patch", parse(allowlist.ParsePatch, fDone), parse(allowlist.ParsePatch, newX)},
	{"search/replace",
		parse(allowlist.ParseSearchReplace, "f\n<<<<<<< SEARCH\nb\n=======\nB\n>>>>>>> REPLACE\n"),
		parse(allowlist.ParseSearchReplace, "x\n<<<<<<< SEARCH\n=======\nB\n>>>>>>> REPLACE\n")},
	{"begin patch",
		parse(allowlist.ParseApplyPatch, "*** Begin Patch\n*** Update File: f\n@@\n-b\n+B\n*** End Patch\n"),
		parse(allowlist.ParseApplyPatch, "*** Begin Patch\n*** Add File: x\n+B\n*** End Patch\n")},
	{"replacements",
		func(s allowlist.Source) ([]allowlist.Edit, error) {
			return allowlist.Replacements([]allowlist.Replacement{{Path: "f", Old: []byte("b"), New: []byte("B")}}, s)
		},
		func(s allowlist.Source) ([]allowlist.Edit, error) {
			return allowlist.Replacements([]allowlist.Replacement{{Path: "x", New: []byte("B")}}, s)
		}},
}

type parser = func([]byte, allowlist.Source) ([]allowlist.Edit, error)

func parse(p parser, text string) func(allowlist.Source) ([]allowlist.Edit, error) {
	return func(s allowlist.Source) ([]allowlist.Edit, error) { return p([]byte(text), s) }
}

func TestParsersAndTheirSource(t *testing.T) {
	t.Parallel()
	disk := errors.New("disk on fire")
	for _, p := range parsers {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, run := range []func(allowlist.Source) ([]allowlist.Edit, error){p.modify, p.create} {
				if edits, err := run(ruleFiles); err != nil || len(edits) != 1 {
					t.Errorf("edits %v, error %v", edits, err)
				}
				// An error that is no verdict is passed on, and denies too.
				edits, err := run(failing{disk})
				_, verdict := errors.AsType[*allowlist.DeniedError](err)
				if edits != nil || !errors.Is(err, disk) || verdict {
					t.Errorf("edits %v, error %v; want the error of the source", edits, err)
				}
			}
			for _, c := range []struct {
				err  error
				code allowlist.Code
			}{{fs.ErrNotExist, allowlist.ErrConflict}, {syscall.ENOTDIR, allowlist.ErrConflict},
				{allowlist.ErrSymlink, allowlist.ErrSymlink}} {
				edits, err := p.modify(failing{c.err})
				if edits != nil || !errors.Is(err, c.code) {
					t.Errorf("modify, source says %v: edits %v, error %v", c.err, edits, err)
				}
				// What is in the way of a new file is for Plan to judge, after the policy.
				if edits, err := p.create(failing{c.err}); err != nil || edits[0].Op != allowlist.Create {
					t.Errorf("create, source says %v: edits %v, error %v", c.err, edits, err)
				}
			}
		})
	}
}

// Input that is far too large, or of no format at all, is refused before work is done on it.
func TestParsersOnBadInput(t *testing.T) {
	t.Parallel()
	huge := make([]byte, 100<<20)
	for name, p := range map[string]parser{
		"patch": allowlist.ParsePatch, "search/replace": allowlist.ParseSearchReplace, "begin patch": allowlist.ParseApplyPatch,
	} {
		start := time.Now()
		edits, err := p(huge, ruleFiles)
		wantDenied(t, edits, err, allowlist.ErrTooLarge)
		if took := time.Since(start); took > time.Second {
			t.Errorf("%s: %v for 100 MiB", name, took)
		}
		for _, garbage := range []string{"", "\n", "\x00\x01\xff", "\x89PNG\r\n\x1a\n", strings.Repeat("\xff", 1<<20)} {
			edits, err := p([]byte(garbage), ruleFiles)
			wantDenied(t, edits, err, allowlist.ErrPatchMalformed)
		}
	}
	edits, err := allowlist.Replacements([]allowlist.Replacement{{Path: "f", Old: huge}}, ruleFiles)
	wantDenied(t, edits, err, allowlist.ErrTooLarge)
}

// The time of a parser grows with its input, not with the square of it, also for input that was made to hurt.
func TestParsersAreLinear(t *testing.T) {
	t.Parallel()
	// Of the processor, with the race detector; a square would take minutes. The clock on the wall would tell how busy the
	// machine is.
	const limit = 10 * time.Second
	tree := fileMap{"big": strings.Repeat("a\n", 1<<20) + "z\n"}
	var sections, adds, blocks strings.Builder
	adds.WriteString("*** Begin Patch\n")
	for i := range 10_000 {
		fmt.Fprintf(&sections, "diff --git a/d/%d b/d/%[1]d\nnew file mode 100644\n--- /dev/null\n+++ b/d/%[1]d\n@@ -0,0 +1 @@\n+x\n", i)
		fmt.Fprintf(&adds, "*** Add File: d/%d\n+x\n", i)
		fmt.Fprintf(&blocks, "d/%d\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n", i)
	}
	adds.WriteString("*** End Patch\n")
	spaces := strings.Repeat("x ", 2000)
	for _, c := range []struct {
		name, text string
		parse      parser
		edits      int // 0: refused
	}{
		{"10,000 sections", sections.String(), allowlist.ParsePatch, 10_000},
		{"10,000 added files", adds.String(), allowlist.ParseApplyPatch, 10_000},
		{"10,000 names", blocks.String(), allowlist.ParseSearchReplace, 10_000},
		{"names full of spaces", strings.Repeat(longName(4000), 500), allowlist.ParsePatch, 0},
		{"one long name", longName(2<<20 - 100), allowlist.ParsePatch, 0},
		{"short components", strings.Repeat("diff --git a/d/"+spaces[:200]+"/x b/d/"+spaces[:200]+"/x\nnew file mode 100644\n", 5000),
			allowlist.ParsePatch, 0},
		{"many blocks on a large file", "big\n" + strings.Repeat("<<<<<<< SEARCH\nz\n=======\nz\n>>>>>>> REPLACE\n", 50_000),
			allowlist.ParseSearchReplace, 0},
		{"overlap everywhere", "big\n<<<<<<< SEARCH\n" + strings.Repeat("a\n", 1<<19) + "=======\n>>>>>>> REPLACE\n",
			allowlist.ParseSearchReplace, 0},
		{"many hunks on a large file", "*** Begin Patch\n*** Update File: big\n" +
			strings.Repeat("@@ a\n-a\n+b\n", 50_000) + "*** End Patch\n", allowlist.ParseApplyPatch, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			start := threadTime()
			edits, err := c.parse([]byte(c.text), tree)
			if took := threadTime() - start; took > limit {
				t.Errorf("took %v", took)
			} else {
				t.Logf("%d bytes in %v", len(c.text), took)
			}
			if len(edits) != c.edits || (err == nil) != (c.edits > 0) {
				t.Errorf("%d edits, error %.200v", len(edits), err)
			}
		})
	}
}
