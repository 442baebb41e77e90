// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// stream makes events from a short form, one line each: "ACTION TEST [rest]". The package is always p; TEST "-" stands
// for the package itself.
func stream(script string) io.Reader {
	var b strings.Builder
	for line := range strings.Lines(script) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 3)
		words = append(words, "", "")
		test, rest := words[1], words[2]
		if test == "-" {
			test = ""
		}
		switch words[0] {
		case "":
		case "attr":
			key, value, _ := strings.Cut(rest, "=")
			fmt.Fprintf(&b, `{"Action":"attr","Package":"p","Test":%q,"Key":%q,"Value":%q}`+"\n", test, key, value)
		case "output":
			fmt.Fprintf(&b, `{"Action":"output","Package":"p","Test":%q,"Output":%q}`+"\n", test, rest+"\n")
		case "raw":
			b.WriteString(rest + "\n")
		default:
			fmt.Fprintf(&b, `{"Action":%q,"Package":"p","Test":%q}`+"\n", words[0], test)
		}
	}
	return strings.NewReader(b.String())
}

func read(t *testing.T, name, script string) (*tally, string) {
	t.Helper()
	var out strings.Builder
	tl := newTally(name, &out)
	if err := tl.read(stream(script)); err != nil {
		t.Fatal(err)
	}
	return tl, out.String()
}

const passing = `
	run TestA
	output TestA quiet please
	pass TestA
	pass -`

func TestTallyPrintsFailuresOnly(t *testing.T) {
	t.Parallel()
	_, out := read(t, "root", passing+`
	run TestB
	output TestB b.go:1: broken
	fail TestB
	output - FAIL
	fail -`)
	if strings.Contains(out, "quiet please") || !strings.Contains(out, "b.go:1: broken") {
		t.Errorf("got\n%s", out)
	}
	if !strings.Contains(out, "ok  \tp\t") || !strings.Contains(out, "FAIL\tp\t") {
		t.Errorf("no line for the package in\n%s", out)
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	const (
		needsRoot     = "run TestA\n attr TestA need.root=missing\n skip TestA\n run TestB\n pass TestB\n pass -"
		needsReflink  = "run TestA\n attr TestA need.reflink=missing-optional\n skip TestA\n run TestB\n pass TestB\n pass -"
		foreignSkip   = "run TestA\n skip TestA\n run TestB\n pass TestB\n pass -"
		metThenSkip   = "run TestA\n attr TestA need.root=met\n skip TestA\n pass -"
		noEnd         = "run TestA\n output TestA started\n fail -"
		crash         = "run TestA\n pass TestA\n output - panic in TestMain\n fail -"
		buildFailure  = "build-fail - \n fail -"
		noTestFiles   = "output - no test files\n skip -"
		notAnEvent    = "raw - go: something odd\n run TestA\n pass TestA\n pass -"
		emptyAction   = "raw - {}\n run TestA\n pass TestA\n pass -"
		everythingOff = "pass -"
	)
	for _, c := range []struct {
		name           string
		root, ordinary string // the scripts of the passes; root empty: not made
		passed, failed int
	}{
		{"both pass", passing, passing, 2, 0},
		{"skipped once", passing, needsRoot, 2, 0},
		{"skipped in every pass", needsRoot, needsRoot, 2, 1},
		{"skipped, root not tried", "", needsRoot, 1, 0},
		{"optional", needsReflink, needsReflink, 2, 0},
		{"foreign skip", passing, foreignSkip, 2, 1},
		{"foreign skip, root not tried", "", foreignSkip, 1, 1},
		{"skip although met", passing, metThenSkip, 1, 1},
		{"no end", noEnd, passing, 1, 1},
		{"crash outside tests", crash, passing, 2, 1},
		{"build failure", buildFailure, passing, 1, 2},
		{"package without tests", noTestFiles, passing, 1, 0},
		{"no event", notAnEvent, passing, 2, 1},
		{"event without action", emptyAction, passing, 2, 1},
		{"nothing ran", everythingOff, everythingOff, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var passes []*tally
			if c.root != "" {
				tl, _ := read(t, "root", c.root)
				passes = append(passes, tl)
			}
			tl, _ := read(t, "ordinary", c.ordinary)
			v := judge(append(passes, tl), c.root != "")
			if v.passed != c.passed || v.failed != c.failed {
				t.Errorf("%d passed, %d failed, want %d and %d: %q", v.passed, v.failed, c.passed, c.failed, v.complaints)
			}
			var out strings.Builder
			v.print(&out)
			if last := fmt.Sprintf("%d passed, %d failed\n", c.passed, c.failed); !strings.HasSuffix(out.String(), last) {
				t.Errorf("the summary does not end with %q:\n%s", last, out.String())
			}
		})
	}
}

func TestUntestedIsReported(t *testing.T) {
	t.Parallel()
	tl, _ := read(t, "ordinary", passing+"\n run TestB\n attr TestB need.cgroup=missing\n skip TestB\n pass -")
	v := judge([]*tally{tl}, false)
	if v.untested["cgroup"] != 1 || v.failed != 0 {
		t.Errorf("untested %v, failed %d: %q", v.untested, v.failed, v.complaints)
	}
}
