// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// junit is the state of a parser. Names of elements are compared exactly: a failure in another spelling must not pass
// for something to be ignored.
type junit struct {
	r    *report
	open []junitElement
	done bool // the outermost element has ended
}

// junitElement is an element that has begun.
type junitElement struct {
	name   string
	path   string         // of suites: their names, outermost first
	claims map[string]int // of suites: the counts that they say they have
	counts map[string]int // of suites: those that they do have
	test   string         // of test cases
	state  outcome        // of test cases
}

// junitInside lists which elements may stand in which others; "" is the document. What may be in a text element is not
// looked at.
var junitInside = map[string][]string{
	"":           {"testsuites", "testsuite"},
	"testsuites": {"testsuite", "properties", "system-out", "system-err"},
	"testsuite":  {"testsuite", "testcase", "properties", "system-out", "system-err"},
	"testcase": {"failure", "error", "skipped", "flakyFailure", "flakyError", "rerunFailure", "rerunError", "properties",
		"system-out", "system-err"},
	"properties": {"property"},
}

const (
	maxJUnitDepth      = 32
	maxJUnitAttributes = 64
)

var errLongNames = errors.New("its names are too long")

func (p *junit) start(t xml.StartElement) error {
	parent := ""
	if len(p.open) > 0 {
		parent = p.open[len(p.open)-1].name
	}
	inside, strict := junitInside[parent]
	switch {
	case p.done:
		return errors.New("a second report")
	case len(p.open) >= maxJUnitDepth:
		return fmt.Errorf("elements are nested deeper than %d", maxJUnitDepth)
	case strict && !contains(inside, t.Name.Local):
		return fmt.Errorf("an element %q in %q", t.Name.Local, parent)
	case len(t.Attr) > maxJUnitAttributes:
		return fmt.Errorf("an element with more than %d attributes", maxJUnitAttributes)
	case t.Name.Space != "":
		return fmt.Errorf("element %q of another namespace, %q", t.Name.Local, t.Name.Space)
	}
	e := junitElement{name: t.Name.Local}
	attributes := map[string]string{}
	for _, a := range t.Attr {
		if _, twice := attributes[a.Name.Local]; twice {
			return fmt.Errorf("attribute %q twice", a.Name.Local)
		}
		attributes[a.Name.Local] = a.Value
	}
	if strict {
		if err := p.enter(&e, attributes); err != nil {
			return err
		}
	}
	p.open = append(p.open, e)
	return nil
}

// enter begins a suite or a test, or notes what an element says of the test around it.
func (p *junit) enter(e *junitElement, attributes map[string]string) error {
	switch e.name {
	case "testsuites", "testsuite":
		e.counts, e.claims = map[string]int{}, map[string]int{}
		if len(p.open) > 0 {
			e.path = p.open[len(p.open)-1].path + "/"
		}
		if e.path += attributes["name"]; !p.r.named(len(e.path)) {
			return errLongNames
		}
		for _, count := range []string{"tests", "failures", "errors", "skipped"} {
			text, ok := attributes[count]
			if !ok || text == "" {
				continue
			}
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return fmt.Errorf("attribute %s is %q", count, shorten(text))
			}
			e.claims[count] = n
		}
		if n, err := strconv.Atoi(attributes["disabled"]); err == nil && n > 0 && attributes["skipped"] != "" {
			e.claims["skipped"] += n // GoogleTest counts what it did not run apart
		}
	case "testcase":
		if attributes["name"] == "" {
			return errors.New("a test without a name")
		}
		if !p.r.named(len(p.open[len(p.open)-1].path)) {
			return errLongNames
		}
		e.test = strings.Join([]string{p.open[len(p.open)-1].path, attributes["classname"], attributes["name"]}, " ")
		p.r.begin(e.test)
		if len(p.r.tests) >= MaxTests {
			return fmt.Errorf("more than %d tests", MaxTests)
		}
		e.state = max(junitStatus(attributes["status"]), junitStatus(attributes["result"]))
	case "failure", "error", "skipped", "flakyFailure", "flakyError", "rerunFailure", "rerunError":
		p.inTest(e.name)
	}
	return nil
}

// junitStatus reads the attributes with which some dialects say what others say with elements. One that is not known is
// no pass.
func junitStatus(text string) outcome {
	switch strings.ToLower(text) {
	case "", "passed", "pass", "ok", "success", "successful", "run", "completed":
		return passed
	case "skipped", "notrun", "disabled", "ignored", "pending", "suppressed":
		return skipped
	}
	return failed
}

// inTest notes what is said of the test that is open.
func (p *junit) inTest(element string) {
	test := &p.open[len(p.open)-1]
	if element == "skipped" {
		test.state = max(test.state, skipped)
		return
	}
	test.state = failed
	p.count(map[string]string{"failure": "failures", "error": "errors"}[element])
}

// count adds one to a count of all suites that are open.
func (p *junit) count(what string) {
	for i := range p.open {
		if c := p.open[i].counts; c != nil {
			c[what]++
		}
	}
}

// end closes the innermost element.
func (p *junit) end() error {
	e := p.open[len(p.open)-1]
	p.open = p.open[:len(p.open)-1]
	p.done = len(p.open) == 0
	if e.test != "" {
		p.r.end(e.test, e.state)
		if p.count("tests"); e.state == skipped {
			p.count("skipped")
		}
	}
	for count, n := range e.claims {
		if n != e.counts[count] {
			p.r.find(FindingForged, e.path, "the suite says %s=%d and has %d", count, n, e.counts[count])
		}
	}
	return nil
}
