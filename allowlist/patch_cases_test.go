// SPDX-License-Identifier: Apache-2.0

package allowlist_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/allowlist"
)

// fileMap is a Source in memory.
type fileMap map[string]string

func (m fileMap) ReadFile(path string) ([]byte, error) {
	content, ok := m[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return []byte(content), nil
}

// after returns the files after the edits. It checks what every parser owes: a Base for what exists, and none for what
// does not.
func (m fileMap) after(t testing.TB, edits []allowlist.Edit) fileMap {
	t.Helper()
	out := maps.Clone(m)
	for _, e := range edits {
		content, exists := m[e.Path]
		if exists != (e.Op != allowlist.Create) || exists && e.Base != allowlist.Sum([]byte(content)) ||
			!exists && e.Base != (allowlist.Digest{}) || (e.Content == nil) != (e.Op == allowlist.Delete) {
			t.Errorf("edit of %q: op %v, exists %t, base %v, content nil %t", e.Path, e.Op, exists, e.Base, e.Content == nil)
		}
		out[e.Path] = string(e.Content)
		if e.Op == allowlist.Delete {
			delete(out, e.Path)
		}
	}
	return out
}

type patchCase struct {
	ID, Name, Patch, Code string
	Allow                 bool
	Result                map[string]*string
}

type patchCases struct {
	Base  fileMap
	Cases []patchCase
}

func readPatchCases(t testing.TB) patchCases {
	t.Helper()
	data, err := os.ReadFile("testdata/allowlist_patches.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases patchCases
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases.Cases) == 0 {
		t.Fatal("no cases")
	}
	return cases
}

// parserCodes are the codes that come from the parser alone. Every other code is a verdict of Plan on well-formed edits.
var parserCodes = []allowlist.Code{
	allowlist.ErrPatchMalformed, allowlist.ErrPathInvalid, allowlist.ErrPathEscapes, allowlist.ErrPathDisguised,
	allowlist.ErrFileType, allowlist.ErrMode, allowlist.ErrConflict, allowlist.ErrTooLarge,
}

func TestParsePatchCases(t *testing.T) {
	t.Parallel()
	cases := readPatchCases(t)
	for _, c := range cases.Cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			edits, err := allowlist.ParsePatch([]byte(c.Patch), cases.Base)
			if slices.Contains(parserCodes, allowlist.Code(c.Code)) {
				wantDenied(t, edits, err, allowlist.Code(c.Code))
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !c.Allow {
				return // Plan denies it
			}
			want := maps.Clone(cases.Base)
			for path, content := range c.Result {
				if content == nil {
					delete(want, path)
					continue
				}
				want[path] = *content
			}
			if diff := cmp.Diff(want, cases.Base.after(t, edits)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// wantDenied asserts a denial whose first decision has the code, and that nothing else came back. A malformed text is
// refused as a whole, with the line.
func wantDenied(t testing.TB, edits []allowlist.Edit, err error, code allowlist.Code) {
	t.Helper()
	denied, ok := errors.AsType[*allowlist.DeniedError](err)
	if !ok || edits != nil {
		t.Fatalf("edits %v, error %v; want a denial with %s", edits, err, code)
	}
	first := denied.Decisions[0]
	if first.Code != code || !errors.Is(err, code) {
		t.Fatalf("code %s, want %s: %v", first.Code, code, err)
	}
	if first.Allowed || first.Detail == "" || first.Hint == "" {
		t.Errorf("a decision that explains nothing: %+v", first)
	}
	if code == allowlist.ErrPatchMalformed &&
		(len(denied.Decisions) != 1 || first.Path != "" || !strings.HasPrefix(first.Detail, "line ")) {
		t.Errorf("decisions %+v; want one, without a path, with a line", denied.Decisions)
	}
}
