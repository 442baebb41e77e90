// SPDX-License-Identifier: Apache-2.0

package allowlist_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"github.com/evoseal/containment/allowlist"
)

// pathCases is the file of path cases. Its policy is JSON, which Load reads as YAML.
type pathCases struct {
	Policy json.RawMessage
	Cases  []pathCase
}

type pathCase struct {
	ID, Category, Op string
	Path             string `json:"path_go_quoted"`
	Allow            bool
	Code             allowlist.Code
}

func readPathCases(t testing.TB) (*allowlist.Policy, []pathCase) {
	t.Helper()
	data, err := os.ReadFile("testdata/allowlist_paths.json")
	if err != nil {
		t.Fatal(err)
	}
	var file pathCases
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for i := range file.Cases {
		c := &file.Cases[i]
		if c.Path, err = strconv.Unquote(c.Path); err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
	}
	p, err := allowlist.Load(bytes.NewReader(file.Policy))
	if err != nil {
		t.Fatal(err)
	}
	return p, file.Cases
}

func opOf(name string) allowlist.Op {
	return map[string]allowlist.Op{
		"create": allowlist.Create, "modify": allowlist.Modify, "delete": allowlist.Delete,
	}[name]
}

// treeCodes are the codes of cases that need a tree. Without one, the edit is allowed.
var treeCodes = map[allowlist.Code]bool{
	allowlist.ErrSymlink: true, allowlist.ErrHardLink: true, allowlist.ErrFileType: true, allowlist.ErrMode: true,
	allowlist.ErrCaseCollision: true, allowlist.ErrConflict: true, allowlist.ErrNestedRepository: true,
}

func TestExplainPathCases(t *testing.T) {
	t.Parallel()
	p, cases := readPathCases(t)
	if len(cases) < 90 {
		t.Fatalf("%d cases: the case file is not whole", len(cases))
	}
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			allow, code := c.Allow, c.Code
			if c.Category == "fs" && treeCodes[code] {
				allow, code = true, ""
			}
			d := p.Explain(opOf(c.Op), c.Path)
			if d.Allowed != allow || d.Code != code {
				t.Errorf("got %v, want allowed %v, code %q", d, allow, code)
			}
			if d.Path != c.Path || d.Op != opOf(c.Op) {
				t.Errorf("the decision is about %v %+q", d.Op, d.Path)
			}
			if !d.Allowed && (d.Hint == "" || d.Detail == "") {
				t.Errorf("%v has no detail or no hint", d)
			}
		})
	}
}
