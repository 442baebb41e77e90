// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const widePolicy = `version: 1
surface:
  - {paths: [src/**], ops: [modify, create]}
  - {paths: ["src/plugins/*.py"], ops: [modify], regions: {begin: "# b", end: "# e"}}
  - {paths: [src/platform/**], ops: [modify, create, delete], directives: [go:build, go:embed]}
  - {paths: [src/score.go], ops: [modify], go_bodies: [Score]}
gate: [src/gate/**]
release: [{pattern: src/Makefile, reason: "T-1"}]
limits: {files: 8, created: 3}
`

func mustLoad(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := Load(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustNarrow(t *testing.T, p *Policy, c Config) *Policy {
	t.Helper()
	q, err := p.Narrow(c)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestNarrow(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, widePolicy)
	q := mustNarrow(t, p, Config{
		Surface: []SurfaceRule{
			{Paths: []string{"src/platform/**"}, Ops: []Op{Modify, Create}, Directives: []string{"go:build", "cgo"}},
			{Paths: []string{"src/plugins/**"}, Ops: []Op{Modify}, Regions: &Markers{Begin: "# x", End: "# y"}},
			{Paths: []string{"src/Makefile", "other/**"}, Ops: []Op{Modify, Create}},
		},
		Protect: []string{"secret"},
		Limits:  &Limits{Files: 100, Created: 2, ChangedLines: 50, FileBytes: 10},
	})
	for _, c := range []struct {
		op   Op
		path string
		want Code
	}{
		{Modify, "src/platform/a.go", ""}, {Delete, "src/platform/a.go", ErrOpNotAllowed}, {Modify, "src/a.go", ErrOutsideSurface},
		{Modify, "src/plugins/a.py", ""}, {Create, "src/plugins/a.py", ErrOpNotAllowed}, {Modify, "src/Makefile", ""},
		{Modify, "other/x", ErrOutsideSurface}, {Modify, "src/platform/Makefile", ErrProtected},
		{Modify, "src/platform/secret/x", ErrProtected}, {Modify, "src/gate/x", ErrProtected},
	} {
		if d := q.Explain(c.op, c.path); d.Code != c.want || d.Allowed != (c.want == "") {
			t.Errorf("got %v, want code %q", d, c.want)
		}
	}
	want := Limits{Files: 8, Created: 2, ChangedLines: 50, FileBytes: 10}
	if diff := cmp.Diff(want, q.limits()); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if d := p.Explain(Delete, "src/platform/a.go"); !d.Allowed {
		t.Errorf("the policy itself has changed: %v", d)
	}
}

// TestScopes: region scopes add up, directives add up within a policy, and a narrowing grants only what both grant.
func TestScopes(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, widePolicy)
	q := mustNarrow(t, p, Config{Surface: []SurfaceRule{
		{Paths: []string{"src/platform/**"}, Ops: []Op{Modify}, Directives: []string{"go:build", "cgo"}},
		{Paths: []string{"src/plugins/**"}, Ops: []Op{Modify}, Regions: &Markers{Begin: "# x", End: "# y"}},
	}})
	_, s := p.judge(Modify, "src/platform/a.go")
	if diff := cmp.Diff(map[string]bool{"go:build": true, "go:embed": true}, s.directives); diff != "" {
		t.Errorf("directives (-want +got):\n%s", diff)
	}
	_, s = q.judge(Modify, "src/platform/a.go")
	if diff := cmp.Diff(map[string]bool{"go:build": true, "cgo": false}, s.directives); diff != "" {
		t.Errorf("narrowed directives (-want +got):\n%s", diff)
	}
	_, s = q.judge(Modify, "src/plugins/a.py")
	if len(s.regions) != 2 || s.regions[0].begin != "# b" || s.regions[1].begin != "# x" || s.regions[0].rule.Source != "policy:4" {
		t.Errorf("regions = %+v, want both", s.regions)
	}
	_, s = p.judge(Modify, "src/score.go")
	if len(s.goBodies) != 1 || cmp.Diff([]string{"Score"}, s.goBodies[0].funcs) != "" {
		t.Errorf("bodies = %+v", s.goBodies)
	}
	for _, op := range []Op{Create, Delete} {
		// The rule for src/** grants create. The scope stands against it all the same.
		if d, _ := p.judge(op, "src/score.go"); d.Code != ErrOpNotAllowed || d.Rule.Pattern != "src/score.go" {
			t.Errorf("got %v", d)
		}
	}
}

func TestNarrowRefuses(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, widePolicy)
	rule := SurfaceRule{Paths: []string{"src/**"}, Ops: []Op{Modify}}
	for _, c := range []struct {
		name   string
		config Config
		want   string
	}{
		{"no surface", Config{Protect: []string{"x"}}, "there is no rule"},
		{"gate", Config{Surface: []SurfaceRule{rule}, Gate: []string{"x"}}, "cannot name a gate"},
		{"release", Config{Surface: []SurfaceRule{rule}, Release: []Release{{"src/Makefile", "x"}}}, "cannot release"},
		{"elsewhere", Config{Surface: []SurfaceRule{rule, {Paths: []string{"docs/**"}, Ops: []Op{Modify}}}}, "surface[1]: the rule can never allow"},
		{"no such operation", Config{Surface: []SurfaceRule{{Paths: []string{"src/a/**"}, Ops: []Op{Delete}}}}, "can never allow"},
		{"the directory itself", Config{Surface: []SurfaceRule{{Paths: []string{"src"}, Ops: []Op{Modify}}}}, "can never allow"},
		{"protected before", Config{Surface: []SurfaceRule{{Paths: []string{"src/gate/a"}, Ops: []Op{Modify}}}}, "can never match"},
		{"protected now", Config{Surface: []SurfaceRule{rule}, Protect: []string{"src"}}, "can never match"},
		{"limit 0", Config{Surface: []SurfaceRule{rule}, Limits: &Limits{ChangedLines: 1}}, "limit files is 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			q, err := p.Narrow(c.config)
			if q != nil || !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Narrow = %v, %v; want ErrConfig with %q", q, err, c.want)
			}
		})
	}
}
