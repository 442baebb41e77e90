// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// verdict is what all passes together say.
type verdict struct {
	passed, failed int
	complaints     []string       // one line each: failures, and skips that the gate does not accept
	untested       map[string]int // component to number of tests that ran in no pass for want of it
}

// judge combines the passes. A test may be skipped in one pass if it passes in another: no caller has both identities.
// A test that ran in no pass is accepted only if it lacks something that "all" demands of nobody, or, when the gate
// could not run as root at all, something that takes root.
func judge(passes []*tally, ranAsRoot bool) verdict {
	v := verdict{untested: map[string]int{}}
	passedSomewhere := map[testID]bool{}
	skipped := map[testID]map[string]string{}
	for _, t := range passes {
		for _, p := range t.problems {
			v.fail("%s pass: %s", t.pass, p)
		}
		for _, id := range t.ids() {
			switch r := t.tests[id]; r.action {
			case "pass":
				v.passed++
				passedSomewhere[id] = true
			case "skip":
				v.checkSkip(t.pass, id, r)
				skipped[id] = r.missing
			default:
				v.fail("%s pass: %s %s", t.pass, id.Package, id.Test)
			}
		}
	}
	for id, missing := range skipped {
		if !passedSomewhere[id] {
			v.checkUntested(id, missing, ranAsRoot)
		}
	}
	slices.Sort(v.complaints)
	if v.passed == 0 {
		v.fail("no test passed: did any run?")
	}
	return v
}

func (v *verdict) fail(format string, args ...any) {
	v.failed++
	v.complaints = append(v.complaints, fmt.Sprintf(format, args...))
}

// checkSkip accepts a skip only from testenv.Need, which leaves an attribute.
func (v *verdict) checkSkip(pass string, id testID, r *record) {
	if len(r.missing) == 0 {
		v.fail("%s pass: %s %s was skipped by something other than testenv.Need", pass, id.Package, id.Test)
	}
}

func (v *verdict) checkUntested(id testID, missing map[string]string, ranAsRoot bool) {
	for _, component := range slices.Sorted(maps.Keys(missing)) {
		if missing[component] == "missing-optional" || !ranAsRoot {
			v.untested[component]++
			return
		}
	}
	if len(missing) > 0 { // else checkSkip has complained
		v.fail("every pass skipped %s %s, for want of %v", id.Package, id.Test, slices.Sorted(maps.Keys(missing)))
	}
}

// ids returns the tests in a fixed order, without the entries of whole packages.
func (t *tally) ids() []testID {
	ids := slices.Collect(maps.Keys(t.tests))
	ids = slices.DeleteFunc(ids, func(id testID) bool { return id.Test == "" })
	slices.SortFunc(ids, func(a, b testID) int {
		return cmp.Or(strings.Compare(a.Package, b.Package), strings.Compare(a.Test, b.Test))
	})
	return ids
}

// print writes the summary; its last line is "N passed, N failed", counted over all passes and with subtests.
func (v *verdict) print(out io.Writer) {
	for _, c := range v.complaints {
		fmt.Fprintln(out, "FAIL:", c)
	}
	for _, component := range slices.Sorted(maps.Keys(v.untested)) {
		fmt.Fprintf(out, "not tested here for want of %s: %d\n", component, v.untested[component])
	}
	fmt.Fprintf(out, "%d passed, %d failed\n", v.passed, v.failed)
}
