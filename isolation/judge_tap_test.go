// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"strings"
	"testing"

	"github.com/evoseal/containment/isolation"
)

const goodTAP = `TAP version 13
# what a program has printed
# Subtest: outer
    # Subtest: inner
    ok 1 - inner
      ---
      duration_ms: 20.1
      not ok 9 - what is in a block does not count
      ...
    # Subtest: later
    ok 2 - later # SKIP why
    1..2
ok 1 - outer
  ---
  duration_ms: 36.3
  ...
# Subtest: todo
ok 2 - todo # TODO
1..2
# tests 4
# pass 2
# fail 0
# cancelled 0
# duration_ms 1891.8
`

func TestTAPReports(t *testing.T) {
	t.Parallel()
	change := func(from, to string) string {
		if !strings.Contains(goodTAP, from) {
			t.Fatalf("%q is not in the report", from)
		}
		return strings.Replace(goodTAP, from, to, 1)
	}
	base := &isolation.Baseline{Passed: []string{"outer", "outer > inner"}, Skipped: []string{"outer > later", "todo"}}
	small := func(lines string) string { return "TAP version 14\n" + lines }
	for what, c := range map[string]struct{ text, want string }{
		"as it is":             {goodTAP, "keep"},
		"with \\r\\n":          {strings.ReplaceAll(goodTAP, "\n", "\r\n"), "keep"},
		"a failure":            {change("ok 2 - todo # TODO", "not ok 2 - todo"), "failed"},
		"a failed part":        {change("    ok 1 - inner", "    not ok 1 - inner"), "failed forged too-few"},
		"all of it failed":     {strings.Replace(change("    ok 1 - inner", "    not ok 1 - inner"), "ok 1 - outer", "not ok 1 - outer", 1), "failed too-few"},
		"TODO that fails":      {change("ok 2 - todo # TODO", "not ok 2 - todo # TODO"), "keep"},
		"no version":           {change("TAP version 13\n", ""), "malformed"},
		"another version":      {change("version 13", "version 15"), "malformed"},
		"twice the version":    {change("TAP version 13\n", "TAP version 13\nTAP version 13\n"), "malformed"},
		"other text":           {change("# what", "what"), "malformed"},
		"upper case":           {change("ok 1 - outer", "OK 1 - outer"), "malformed"},
		"no plan":              {change("\n1..2\n", "\n"), "unfinished"},
		"no plan of a part":    {change("    1..2\n", ""), "malformed"},
		"a second plan":        {change("\n1..2\n", "\n1..2\n1..2\n"), "malformed"},
		"another plan":         {change("\n1..2\n", "\n1..3\n"), "malformed"},
		"a plan of words":      {change("\n1..2\n", "\n1..two\n"), "malformed"},
		"a plan below 0":       {change("\n1..2\n", "\n1..-2\n"), "malformed"},
		"beyond the plan":      {goodTAP + "ok 3 - more\n", "malformed"},
		"a gap":                {change("ok 2 - todo", "ok 3 - todo"), "malformed"},
		"a number too large":   {change("ok 2 - todo", "ok 99999999999999999999 - todo"), "malformed"},
		"twice":                {change("ok 2 - todo # TODO", "ok 2 - outer"), "forged"},
		"a part of nothing":    {goodTAP + "    ok 1 - more\n    1..1\n", "unfinished"},
		"too deep for a part":  {change("ok 2 - todo", "        ok 1 - deep\n        1..1\nok 2 - todo"), "malformed"},
		"half an indentation":  {change("    1..2\n", "   1..2\n"), "malformed"},
		"an open block":        {change("  ...\n# Subtest: todo", "# Subtest: todo"), "unfinished"},
		"a block of nothing":   {change("TAP version 13\n", "TAP version 13\n  ---\n"), "malformed"},
		"bail out":             {change("ok 2 - todo # TODO", "Bail out! no database"), "failed malformed"},
		"summary of a failure": {change("# fail 0", "# fail 1"), "forged"},
		"cancelled":            {change("# cancelled 0", "# cancelled 2"), "forged"},
		"printed early":        {change("# what a program has printed", "# fail 1"), "keep"},
		"nothing":              {"", "no-report"},
		"only a version":       {"TAP version 13\n", "no-report"},
		"no tests":             {small("1..0 # SKIP nothing to do\n"), "no-report"},
		"skipped anew":         {change("    ok 1 - inner", "    ok 1 - inner # skip"), "skipped too-few"},
		"quoted":               {change("    ok 1 - inner", `    ok 1 - inner \# skip`), "vanished"},
		"not quoted":           {change("    ok 1 - inner", `    ok 1 - inner \\ # skip`), "skipped too-few vanished"},
		"vanished":             {small("1..1\nok 1 - outer\n"), "too-few vanished"},
		"beyond all depth":     {small(strings.Repeat("    ", 40) + "ok 1\n"), "malformed"},
	} {
		got := foundKinds(t, isolation.TAP{}, printed(c.text, base))
		if got != c.want && !((c.want == "malformed" || c.want == "unfinished" || c.want == "no-report") && strings.Contains(got, c.want)) {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
	}
	// Names and numbers may be left out, and the plan may come first.
	bare := &isolation.Baseline{Passed: []string{"#1", "#2", "3 apples"}}
	if got := foundKinds(t, isolation.TAP{}, printed(small("1..3\nok\nok 2\nok - 3 apples\n"), bare)); got != "keep" {
		t.Errorf("a bare list: %s", got)
	}
}

func FuzzTAP(f *testing.F) {
	f.Add([]byte(goodTAP), 0)
	f.Add([]byte("TAP version 14\n1..1\nok\n"), 1)
	f.Fuzz(func(t *testing.T, text []byte, min int) {
		fuzzReport(t, isolation.TAP{MinTests: min}, printed(string(text), nil))
	})
}
