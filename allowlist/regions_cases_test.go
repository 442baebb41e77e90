// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"encoding/json"
	"os"
	"testing"
)

type regionCase struct {
	ID, Path, Op, New, Code string
	Base                    *string
	Directives              []string
	Scope                   struct {
		Kind, Begin, End string
		Functions        []string
	}
}

// scope is the scope that the rule of a case gives its path.
func (c regionCase) scope() scope {
	s := scope{directives: map[string]bool{}}
	rule := Rule{Pattern: c.Path, Source: "policy:1"}
	switch c.Scope.Kind {
	case "markers":
		s.regions = []regions{{c.Scope.Begin, c.Scope.End, rule}}
	case "go_bodies":
		s.goBodies = []goBodies{{c.Scope.Functions, rule}}
	}
	for _, name := range c.Directives {
		s.directives[name] = true
	}
	return s
}

func readRegionCases(t testing.TB) []regionCase {
	t.Helper()
	data, err := os.ReadFile("testdata/allowlist_regions.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []regionCase }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	return file.Cases
}

func TestScopeCases(t *testing.T) {
	t.Parallel()
	for _, c := range readRegionCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			want := Code(c.Code)
			if want != ErrOutsideRegion && want != ErrDirective {
				want = "" // denied before content is looked at
			}
			var base []byte
			if c.Base != nil {
				base = []byte(*c.Base)
			}
			code, rule, detail := c.scope().check(c.Path, base, []byte(c.New), c.Op == "create")
			if code != want || (code == "") != (detail == "") {
				t.Errorf("code %q, want %q: %s", code, want, detail)
			}
			if named := rule != (Rule{}); named != (want == ErrOutsideRegion) {
				t.Errorf("rule %+v for code %q", rule, code)
			}
		})
	}
}
