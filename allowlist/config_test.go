// SPDX-License-Identifier: Apache-2.0

package allowlist_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/evoseal/containment/allowlist"
)

// head and tail make a policy of a part of one. The part starts in line 2.
const (
	head = "version: 1\n"
	tail = "\nsurface: [{paths: [src/**], ops: [modify, create]}]\ngate: []\n"
)

// configProblems has a case for every reason to refuse a policy: where, what, and the way out.
var configProblems = []struct {
	name, policy string
	line         int
	rule, fix    string
}{
	{"empty", "", 0, "policy is empty", "version: 1"},
	{"only a comment", "# nothing\n", 0, "policy is empty", "version: 1"},
	{"not YAML", head + "surface: [\n", 0, "not YAML", "syntax"},
	{"a list", "- version\n", 1, "not a mapping", "version, surface, protect"},
	{"no version", strings.TrimPrefix(tail, "\n"), 1, "version is missing", "version: 1"},
	{"other version", "version: 2" + tail, 1, "version is not known", "version: 1"},
	{"version as text", `version: "1"` + tail, 1, "version is not known", "version: 1"},
	{"unknown key", head + "enabled: false" + tail, 2, `unknown key "enabled"`, "protect, gate"},
	{"unknown key of a rule", head + "gate: []\nsurface:\n  - paths: [a]\n    ops: [modify]\n    deny: x\n",
		6, `unknown key "deny"`, "directives"},
	{"duplicate key", head + "gate: [a]" + tail, 4, `duplicate key "gate"`, "keep one"},
	{"protect is no list", head + "protect: configs" + tail, 2, "protect: not a list", "[]"},
	{"protect is null", head + "protect:" + tail, 2, "protect: not a list", "[]"},
	{"pattern is no string", head + "protect: [1]" + tail, 2, "protect[0]: not a string", "quotes"},
	{"pattern is a mapping", head + "protect: [{a: b}]" + tail, 2, "protect[0]: not a string", "string"},
	{"limits is a list", head + "limits: [1]" + tail, 2, "limits: not a mapping", "files"},
	{"anchor", head + "protect: &a [x]" + tail, 2, "an anchor (&a)", "write each value out"},
	{"alias", head + "protect: [&a x, *a]" + tail, 2, "an alias (*a)", "write the value out"},
	{"merge key", head + "limits: {<<: {files: 1}}" + tail, 2, "merge key", "write the keys out"},
	{"explicit tag", head + "protect: [!!str x]" + tail, 2, "explicit tag", "remove the tag"},
	{"bare tag", head + "protect: [x, ! y]" + tail, 2, "explicit tag", "remove the tag"},
	{"bare tag on a list", head + "protect: ! [x]" + tail, 2, "explicit tag", "remove the tag"},
	{"tag on a key", head + "!!str protect: [x]" + tail, 2, "explicit tag", "remove the tag"},
	{"second document", head + "gate: []\nsurface: [{paths: [a], ops: [modify]}]\n---\nx: y\n",
		4, "second document", "keep one document"},
	{"empty string", head + `protect: [""]` + tail, 2, "an empty string", "write a value"},
	{"over 1 MiB", head + "#" + strings.Repeat("x", 1<<20) + tail, 0, "more than 1 MiB", "patterns"},

	{"leading slash", head + "protect: [/a]" + tail, 2, "absolute", "without the leading /"},
	{"leading tilde", head + "protect: [~/a]" + tail, 2, "absolute", "without the leading ~"},
	{"negation", head + "protect: ['!a']" + tail, 2, "no negation", "list what shall be allowed"},
	{"backslash", head + `protect: ['a\*']` + tail, 2, "backslash", "[[]"},
	{"dot component", head + "protect: [a/./b]" + tail, 2, `a component is "."`, "path"},
	{"dotdot component", head + "protect: [../b]" + tail, 2, `a component is ".."`, "path"},
	{"dotdot from braces", head + "protect: ['a/.{.,b}/c']" + tail, 2, `a component is ".."`, "path"},
	{"empty component", head + "protect: [a//b]" + tail, 2, "empty component", "single slashes"},
	{"open class", head + "protect: ['a[b']" + tail, 2, "brackets or braces", "[[]"},
	{"open brace", head + "protect: ['a{b']" + tail, 2, "brackets or braces", "close"},
	{"slash in a class", head + "protect: ['a[b/c]d']" + tail, 2, "not a valid pattern", "slash"},
	{"stars in a word", head + "protect: ['a**/b']" + tail, 2, "** stands beside", "whole component"},
	{"stars from braces", head + "protect: ['{*,b}*/c']" + tail, 2, "** stands beside", "whole component"},
	{"too many braces", head + "protect: ['" + strings.Repeat("{a,b}", 9) + "']" + tail, 2, "more than 256", "fewer"},
	{"not canonical", head + `protect: ["cafe\u0301/*"]` + tail, 2, "NFC", "path"},
	{"device", head + "protect: ['src/aux.*']" + tail, 2, "device", "path"},
	{"class across case", head + "protect: ['[A-z]x']" + tail, 2, "changes its meaning", "ranges within"},
	{"folds to a star", head + `protect: ["a\uff0a"]` + tail, 2, "folds to a character", "?"},

	{"surface missing", head + "gate: []\n", 1, "there is no rule", "at least one rule"},
	{"surface empty", head + "gate: []\nsurface: []\n", 1, "there is no rule", "at least one rule"},
	{"paths missing", head + "gate: []\nsurface:\n  - ops: [modify]\n",
		4, "surface[0].paths: there is no pattern", "src/**"},
	{"ops missing", head + "gate: []\nsurface:\n  - paths: [a]\n",
		4, "surface[0].ops: no operation", "modify, create, delete"},
	{"unknown op", head + "gate: []\nsurface:\n  - paths: [a]\n    ops: [rename]\n",
		5, "not known", "nothing else can be granted"},
	{"op twice", head + "gate: []\nsurface:\n  - paths: [a]\n    ops: [modify, modify]\n",
		5, "granted twice", "keep one"},
	{"gate missing", head + "surface: [{paths: [a], ops: [modify]}]\n", 1, "gate is missing", "gate: []"},

	{"wholly protected by core", head + "gate: []\nsurface:\n  - paths: [.git/config, 'a/.ENV.*/b']\n    ops: [modify]\n",
		4, "can never match", "remove the rule"},
	{"wholly protected by protect", head + "gate: []\nprotect: [src]\nsurface:\n  - paths: [a/src/**]\n    ops: [modify]\n",
		5, "can never match", "remove"},
	{"wholly protected by gate", head + "gate: [a/b]\nsurface:\n  - paths: [a/B/*.go, a]\n    ops: [modify]\n",
		4, "can never match", "remove"},
	{"equal to a protect pattern", head + "gate: ['a/*/c*']\nsurface:\n  - paths: ['a/*/C*']\n    ops: [modify]\n",
		4, "can never match", "remove"},
	{"wholly protected extension", head + "gate: []\nsurface:\n  - paths: ['lib/*.so']\n    ops: [modify]\n",
		4, "can never match", "release"},
	{"release of nothing", head + "release: [{pattern: src/a.go, reason: x}]" + tail,
		2, "no default rule", "remove it"},
	{"release outside the surface", head + "release: [{pattern: lib/Makefile, reason: x}]" + tail,
		2, "no surface rule reaches", "surface rule"},
	{"release of core", head + "release: [{pattern: src/.env, reason: x}]" + tail,
		2, "cannot be released", "core names"},
	{"release of a core wildcard", head + "release: [{pattern: 'src/**/*.pem', reason: x}]" + tail,
		2, "cannot be released", "core names"},
	{"release of protect", head + "protect: [src/Makefile]\nrelease: [{pattern: src/Makefile, reason: x}]" + tail,
		3, "cannot be released", "protect and gate"},
	{"release without reason", head + "release: [{pattern: src/Makefile}]" + tail, 2, "no reason", "write why"},
	{"release with blank reason", head + "release: [{pattern: src/Makefile, reason: ' '}]" + tail,
		2, "no reason", "write why"},
	{"release without pattern", head + "release: [{reason: x}]" + tail, 2, "pattern is missing", "write the pattern"},
	{"op with limit 0", head + "limits: {created: 0}" + tail, 3, "limit created is 0", "raise the limit"},
	{"no files", head + "limits: {files: 0}" + tail, 3, "limit files is 0", "raise the limit"},
	{"duplicate in a rule", head + "gate: []\nsurface:\n  - paths: [a/, a/**]\n    ops: [modify]\n",
		4, "never has an effect", "remove one"},
	{"duplicate rule", head + "gate: []\nsurface:\n  - {paths: [a], ops: [modify]}\n  - {paths: [a], ops: [modify]}\n",
		5, "never has an effect", "remove one"},
	{"duplicate protect", head + "protect: [a/b, A/b/]" + tail, 2, "never has an effect", "remove one"},
	{"duplicate of gate", head + "protect: [a]\ngate: [a/**]\nsurface: [{paths: [b], ops: [modify]}]\n",
		3, "never has an effect", "remove one"},
	{"duplicate release", head + "release:\n- {pattern: src/Makefile, reason: x}\n- {pattern: src/Makefile, reason: y}" + tail,
		4, "never has an effect", "remove one"},

	{"both region kinds", head + "gate: []\nsurface:\n  - paths: [a.go]\n    ops: [modify]\n    go_bodies: [F]\n    regions: {begin: '# b', end: '# e'}\n",
		7, "go_bodies and regions", "two rules"},
	{"go_bodies and create", head + "gate: []\nsurface:\n  - paths: [a.go]\n    ops: [modify, create]\n    go_bodies: [F]\n",
		5, "grants create", "ops: [modify]"},
	{"regions and delete", head + "gate: []\nsurface:\n  - paths: [a.go]\n    ops: [delete]\n    regions: {begin: '# b', end: '# e'}\n",
		5, "grants delete", "ops: [modify]"},
	{"go_bodies elsewhere", head + "gate: []\nsurface:\n  - paths: ['a/*']\n    ops: [modify]\n    go_bodies: [F]\n",
		4, "not Go", ".go"},
	{"no function", head + "gate: []\nsurface:\n  - paths: [a.go]\n    ops: [modify]\n    go_bodies: []\n",
		6, "no function", "at least one"},
	{"bad function", head + "gate: []\nsurface:\n  - paths: [a.go]\n    ops: [modify]\n    go_bodies: [T.F]\n",
		6, "does not name a function", "(*T).Name"},
	{"one marker", head + "gate: []\nsurface:\n  - paths: [a]\n    ops: [modify]\n    regions: {begin: '# b'}\n",
		6, "a marker is missing", "begin and end"},
	{"equal markers", head + "gate: []\nsurface:\n  - paths: [a]\n    ops: [modify]\n    regions: {begin: '# b', end: '# B'}\n",
		6, "cannot be told apart", "different"},
	{"marker in marker", head + "gate: []\nsurface:\n  - paths: [a]\n    ops: [modify]\n    regions: {begin: '# b', end: '# b x'}\n",
		6, "cannot be told apart", "different"},
	{"marker without a letter", head + "gate: []\nsurface:\n  - paths: [a]\n    ops: [modify]\n    regions: {begin: '#<', end: '# e'}\n",
		6, "no letter", "begin and end"},
	{"marker of two lines", head + "gate: []\nsurface:\n  - paths: [a]\n    ops: [modify]\n    regions: {begin: \"a\\nb\", end: '# e'}\n",
		6, "does not print", "whole line"},
	{"unknown directive", head + "gate: []\nsurface:\n  - paths: [a]\n    ops: [modify]\n    directives: ['go:']\n",
		6, "not the name of a directive", "go:NAME"},
	{"negative limit", head + "limits: {files: -1}" + tail, 2, "not a limit", "whole number"},
	{"limit with a unit", head + "limits: {files: 1KiB}" + tail, 2, "not a limit", "whole number"},
	{"unknown unit", head + "limits: {file_bytes: 1MB}" + tail, 2, "not a limit", "MiB"},
	{"limit overflows", head + "limits: {file_bytes: 9999999999999MiB}" + tail, 2, "not a limit", "MiB"},
	{"limit with a leading zero", head + "limits: {files: 010}" + tail, 2, "not a limit", "whole number"},
	{"zero written twice", head + "limits: {deleted: 00}" + tail, 2, "not a limit", "whole number"},
	{"size with a leading zero", head + "limits: {file_bytes: 010KiB}" + tail, 2, "not a limit", "MiB"},
	{"limit in hexadecimal", head + "limits: {file_bytes: 0x10}" + tail, 2, "not a limit", "MiB"},
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range configProblems {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := allowlist.Load(strings.NewReader(c.policy))
			if p != nil || !errors.Is(err, allowlist.ErrConfig) {
				t.Fatalf("Load = %v, %v; want ErrConfig", p, err)
			}
			ce, ok := errors.AsType[*allowlist.ConfigError](err)
			if !ok {
				t.Fatalf("%T is no *ConfigError", err)
			}
			for _, p := range ce.Problems {
				sameLine := p.Line == c.line || c.line == 0
				if sameLine && strings.Contains(p.Rule, c.rule) && strings.Contains(p.Fix, c.fix) {
					if !strings.Contains(err.Error(), p.Error()) {
						t.Errorf("%q is not in %q", p.Error(), err)
					}
					return
				}
			}
			t.Errorf("no problem in line %d with %q and the way out %q:\n%v", c.line, c.rule, c.fix, err)
		})
	}
}

func TestLoadReportsAllProblems(t *testing.T) {
	t.Parallel()
	_, err := allowlist.Load(strings.NewReader(`version: 1
enabled: false
surface:
  - paths: [/a, b//c]
    ops: [rename]
release:
  - {pattern: src/.env}
limits: {files: x}
`))
	ce, ok := errors.AsType[*allowlist.ConfigError](err)
	if !ok {
		t.Fatalf("%v is no *ConfigError", err)
	}
	want := []int{1, 2, 4, 4, 5, 7, 7, 8}
	if got := lines(ce); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("problems in lines %v, want %v:\n%v", got, want, err)
	}
}

func lines(ce *allowlist.ConfigError) []int {
	var lines []int
	for _, p := range ce.Problems {
		lines = append(lines, p.Line)
	}
	return lines
}

// goodRule is valid, so that a test of New shows one thing.
func goodRule() allowlist.SurfaceRule {
	return allowlist.SurfaceRule{Paths: []string{"src/**"}, Ops: []allowlist.Op{allowlist.Modify, allowlist.Create}}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	none := []string{}
	rules := []allowlist.SurfaceRule{goodRule()}
	scoped := allowlist.SurfaceRule{Paths: []string{"a.go"}, Ops: []allowlist.Op{allowlist.Modify}}
	bodies, markers := scoped, scoped
	bodies.GoBodies = none
	markers.Regions = &allowlist.Markers{}
	cases := []struct {
		name   string
		config allowlist.Config
		want   string
	}{
		{"zero", allowlist.Config{}, "surface: there is no rule"},
		{"nil gate", allowlist.Config{Surface: rules}, "gate is missing"},
		{"zero limits", allowlist.Config{Surface: rules, Gate: none, Limits: &allowlist.Limits{}},
			"surface[0].ops[0]: modify is granted, and limit files is 0"},
		{"negative limit", allowlist.Config{Surface: rules, Gate: none, Limits: &allowlist.Limits{Files: -1, Created: 1, ChangedLines: 1}},
			"negative"},
		{"zero op", allowlist.Config{Surface: []allowlist.SurfaceRule{{Paths: []string{"a"}, Ops: []allowlist.Op{0}}}, Gate: none},
			"surface[0].ops[0]: this operation is not known"},
		{"empty pattern", allowlist.Config{Surface: rules, Gate: []string{""}}, "gate[0]: \"\": the pattern is empty"},
		{"empty bodies", allowlist.Config{Surface: []allowlist.SurfaceRule{bodies}, Gate: none},
			"surface[0].go_bodies: no function"},
		{"empty markers", allowlist.Config{Surface: []allowlist.SurfaceRule{markers}, Gate: none},
			"surface[0].regions.begin: a marker is missing"},
		{"release", allowlist.Config{Surface: rules, Gate: none, Release: []allowlist.Release{{Pattern: "src/tox.ini"}}},
			"release[0].reason: the release of \"src/tox.ini\" has no reason"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := allowlist.New(c.config)
			if p != nil || !errors.Is(err, allowlist.ErrConfig) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("New = %v, %v; want ErrConfig with %q", p, err, c.want)
			}
		})
	}
}
