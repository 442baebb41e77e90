// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
)

// GoTest reads the output of `go test -json`. It keeps a variant if the run exited with 0, at least MinTests tests
// passed, every test that passed in the accepted tree is still in the report, none failed, and none is skipped that was
// not skipped before. Subtests count as tests.
//
// Each test may be in the report once, so -count and -cpu with more than one value, and -bench, are not for it.
type GoTest struct {
	MinTests int // 0: as many as pass in the accepted tree
}

// Needs asks for -json and for all of the output.
func (GoTest) Needs() JudgeNeeds { return JudgeNeeds{Args: []string{"-json"}, Stdout: true} }

// Judge compares the report with the baseline.
func (g GoTest) Judge(ctx context.Context, e Evaluation) (Ruling, error) {
	return judgeReport(ctx, e, g.MinTests, readGoTest)
}

// Measure takes the baseline.
func (g GoTest) Measure(ctx context.Context, e Evaluation) (*Baseline, error) {
	return measureReport(ctx, e, g.MinTests, readGoTest)
}

// goEvent is a line of `go test -json`; see `go doc test2json` and `go help buildjson`.
type goEvent struct {
	Action, Package, Test string
}

func readGoTest(e Evaluation, r *report) {
	text := stdout(e, r)
	packages := map[string]bool{} // whether it has ended
	for n := 1; len(text) > 0; n++ {
		var one []byte
		if one, text, _ = bytes.Cut(text, []byte("\n")); len(bytes.TrimSpace(one)) == 0 {
			continue
		}
		var event goEvent
		if err := json.Unmarshal(one, &event); err != nil {
			r.find(FindingMalformed, "", "line %d is no event of go test -json: %v", n, err)
			return
		}
		switch event.Action {
		case "build-output":
			continue
		case "build-fail":
			r.find(FindingFailed, event.Package, "it does not build")
			continue
		}
		if event.Package == "" || strings.ContainsAny(event.Package, " \t") {
			r.find(FindingMalformed, event.Test, "line %d names no package", n)
			return
		}
		if len(packages) > MaxTests || len(r.tests) > MaxTests {
			r.find(FindingTooLarge, "", "more than %d tests", MaxTests)
			return
		}
		readGoEvent(event, packages, r)
	}
	for name, ended := range packages {
		if !ended {
			r.find(FindingUnfinished, name, "the package has no result")
		}
	}
}

var goResults = map[string]outcome{"pass": passed, "fail": failed, "skip": skipped}

// readGoEvent takes one event of a package or test into account.
func readGoEvent(event goEvent, packages map[string]bool, r *report) {
	name := event.Package
	if event.Test != "" {
		name += " " + event.Test
	}
	if packages[event.Package] {
		r.find(FindingForged, name, "%q after the package's result", event.Action)
	}
	if _, begun := packages[event.Package]; !begun {
		packages[event.Package] = false
	}
	result, ok := goResults[event.Action]
	switch {
	case ok && event.Test != "":
		r.end(name, result)
	case ok:
		packages[event.Package] = true
		if result == failed {
			r.find(FindingFailed, name, "the package failed")
		}
	case event.Action == "run" && event.Test != "":
		r.begin(name)
	case event.Action == "start" && event.Test == "":
	case contains([]string{"pause", "cont", "output", "bench", "attr", "artifacts"}, event.Action):
	default:
		r.find(FindingMalformed, name, "action %q is not defined", event.Action)
	}
}
