// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// event is one line of `go test -json`; the fields are described by `go doc test2json`.
type event struct {
	Action, Package, Test, Output string
	ImportPath                    string // of build-output and build-fail
	Key, Value                    string // of attr
	Elapsed                       float64
}

// testID names a test or subtest.
type testID struct{ Package, Test string }

// record is what one pass says about one test.
type record struct {
	action  string            // "pass", "fail", "skip"; "run" if it began and never ended
	missing map[string]string // component to attribute value, as testenv.Need left them
	output  strings.Builder   // dropped when the test passes
}

// tally collects the events of one pass. It prints what a person needs, one line a package and the output of whatever
// failed, while the pass is running.
type tally struct {
	pass     string
	out      io.Writer
	tests    map[testID]*record
	problems []string // failures that belong to no test: a build, a crash outside every test
}

func newTally(pass string, out io.Writer) *tally {
	return &tally{pass: pass, out: out, tests: map[testID]*record{}}
}

// read consumes a stream of events to its end. A line that is no event is printed as it stands and counts as a problem:
// nothing that `go test` says may get lost.
func (t *tally) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			t.addLine(line)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("gate: reading the output of go test: %w", err)
		}
	}
}

func (t *tally) addLine(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		fmt.Fprintf(t.out, "%s", line)
		t.problems = append(t.problems, fmt.Sprintf("not an event of go test: %.80q", line))
		return
	}
	t.add(e)
}

func (t *tally) add(e event) {
	switch {
	case e.Action == "build-output":
		fmt.Fprint(t.out, e.Output)
	case e.Action == "build-fail":
		t.problems = append(t.problems, "build of "+e.ImportPath)
	case e.Test == "":
		t.addPackage(e)
	default:
		t.addTest(e)
	}
}

// addPackage handles events of a whole package; its output is kept under the empty test name.
func (t *tally) addPackage(e event) {
	r := t.record(testID{e.Package, ""})
	switch e.Action {
	case "output":
		r.output.WriteString(e.Output)
	case "pass", "fail":
		r.action = e.Action
		t.closePackage(e)
	case "skip":
		r.action = "pass" // "no test files": nothing was skipped
	}
}

// closePackage settles the tests that never reported an end and finds out whether a failure has a test to it.
func (t *tally) closePackage(e event) {
	explained := false
	for id, r := range t.tests {
		if id.Package != e.Package || id.Test == "" {
			continue
		}
		if r.action == "run" {
			r.action = "fail"
			fmt.Fprintf(t.out, "--- NO END: %s\n%s", id.Test, r.output.String())
		}
		explained = explained || r.action == "fail"
	}
	if e.Action == "fail" && !explained {
		t.problems = append(t.problems, "package "+e.Package)
		fmt.Fprint(t.out, t.tests[testID{e.Package, ""}].output.String())
	}
	status := map[string]string{"pass": "ok  ", "fail": "FAIL"}[e.Action]
	fmt.Fprintf(t.out, "%s\t%s\t%.1fs\t(%s)\n", status, e.Package, e.Elapsed, t.pass)
}

func (t *tally) addTest(e event) {
	r := t.record(testID{e.Package, e.Test})
	switch e.Action {
	case "run":
		r.action = "run"
	case "output":
		r.output.WriteString(e.Output)
	case "attr":
		if component, ok := strings.CutPrefix(e.Key, "need."); ok && e.Value != "met" {
			r.missing[component] = e.Value
		}
	case "pass", "skip":
		r.action = e.Action
		r.output.Reset()
	case "fail":
		r.action = e.Action
		fmt.Fprintf(t.out, "%s", r.output.String())
	}
}

func (t *tally) record(id testID) *record {
	r, ok := t.tests[id]
	if !ok {
		r = &record{missing: map[string]string{}}
		t.tests[id] = r
	}
	return r
}
