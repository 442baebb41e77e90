// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/evoseal/containment/isolation"
)

const goodJUnit = `<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" errors="0" failures="0" skipped="1" tests="3" time="0.03" hostname="h">
<properties><property name="a" value="b"/></properties>
<testcase classname="m.T" name="test_a" time="0.001"/>
<testcase classname="m.T" name="test_b[1-x]" time="0.001"><system-out>&lt;failure/&gt; <b>any</b></system-out></testcase>
<testcase classname="m" name="test_c"><skipped type="pytest.skip" message="no"/></testcase>
</testsuite></testsuites>
`

func TestJUnitReports(t *testing.T) {
	t.Parallel()
	change := func(from, to string) string {
		if !strings.Contains(goodJUnit, from) {
			t.Fatalf("%q is not in the report", from)
		}
		return strings.Replace(goodJUnit, from, to, 1)
	}
	const first = `<testcase classname="m.T" name="test_a" time="0.001"/>`
	in := func(element string) string {
		return change(first, strings.Replace(first, "/>", ">"+element+"</testcase>", 1))
	}
	base := &isolation.Baseline{Passed: []string{"/pytest m.T test_a", "/pytest m.T test_b[1-x]"}, Skipped: []string{"/pytest m test_c"}}
	for what, c := range map[string]struct{ text, want string }{
		"as it is":               {goodJUnit, "keep"},
		"no counts":              {strings.NewReplacer(` tests="3"`, "", ` skipped="1"`, "").Replace(goodJUnit), "keep"},
		"a status":               {change(first, `<testcase classname="m.T" name="test_a" status="run" result="completed"/>`), "keep"},
		"nested suites":          {strings.NewReplacer("<testsuites>", `<testsuites tests="3">`).Replace(goodJUnit), "keep"},
		"a failure":              {in("<failure/>"), "failed forged too-few"},
		"a failure that counts":  {strings.Replace(in("<failure/>"), `failures="0"`, `failures="1"`, 1), "failed too-few"},
		"an error that counts":   {strings.Replace(in("<error>x</error>"), `errors="0"`, `errors="1"`, 1), "failed too-few"},
		"a failure and a skip":   {strings.Replace(in("<failure/><skipped/>"), `failures="0"`, `failures="1"`, 1), "failed too-few"},
		"a skip and a failure":   {strings.Replace(in("<skipped/><failure/>"), `failures="0"`, `failures="1"`, 1), "failed too-few"},
		"it passed at last":      {in("<flakyFailure/>"), "failed too-few"},
		"it failed again":        {in("<rerunFailure/>"), "failed too-few"},
		"a failed status":        {change(first, `<testcase classname="m.T" name="test_a" status="failed"/>`), "failed too-few"},
		"an unknown status":      {change(first, `<testcase classname="m.T" name="test_a" result="maybe"/>`), "failed too-few"},
		"not run":                {change(first, `<testcase classname="m.T" name="test_a" status="notrun"/>`), "forged skipped too-few"},
		"skipped anew":           {strings.Replace(in("<skipped/>"), `skipped="1"`, `skipped="2"`, 1), "skipped too-few"},
		"upper case":             {in("<FAILURE/>"), "malformed"},
		"another element":        {in("<fail/>"), "malformed"},
		"failure of a suite":     {change(first, "<failure/>"), "malformed"},
		"another namespace":      {in(`<f:failure xmlns:f="urn:x"/>`), "malformed"},
		"wrong number of tests":  {change(`tests="3"`, `tests="4"`), "forged"},
		"a number of words":      {change(`tests="3"`, `tests="three"`), "malformed"},
		"a number below 0":       {change(`tests="3"`, `tests="-3"`), "malformed"},
		"many attributes":        {change(`tests="3"`, `tests="3"`+manyAttributes), "malformed"},
		"an attribute twice":     {change(`tests="3"`, `tests="3" tests="3"`), "malformed"},
		"hidden failures":        {change(`failures="0"`, `failures="1"`), "forged"},
		"twice":                  {strings.Replace(change(first, first+first), `tests="3"`, `tests="4"`, 1), "forged"},
		"no name":                {change(`name="test_a"`, ""), "malformed"},
		"empty":                  {"", "no-report"},
		"white space":            {" \n", "no-report"},
		"no XML":                 {"3 passed", "malformed"},
		"another document":       {"<html></html>", "malformed"},
		"no tests":               {`<testsuite name="pytest" tests="0"></testsuite>`, "no-report"},
		"no suites":              {`<testsuites/>`, "no-report"},
		"a second report":        {goodJUnit + "<testsuites/>", "malformed"},
		"text after it":          {goodJUnit + "x", "malformed"},
		"cut off":                {change("</testsuites>", ""), "malformed"},
		"entities":               {"<!DOCTYPE x [<!ENTITY a \"&b;&b;\"><!ENTITY b \"bbbb\">]>" + change("utf-8", "utf-8"), "malformed"},
		"an entity":              {in("<system-out>&a;</system-out>"), "malformed"},
		"another encoding":       {change("utf-8", "utf-7"), "malformed"},
		"not UTF-8":              {in("<system-out>\xff</system-out>"), "malformed"},
		"suites without end":     {strings.Repeat(`<testsuite name="x">`, 1000), "malformed"},
		"a test in a test":       {in(first), "malformed"},
		"a test without a suite": {first, "malformed"},
		"vanished":               {strings.Replace(change(first, ""), `tests="3"`, `tests="2"`, 1), "too-few vanished"},
	} {
		got := foundKinds(t, isolation.JUnit{File: "r.xml"}, left(t, "r.xml", c.text, base))
		if got != c.want && !((c.want == "malformed" || c.want == "no-report") && strings.Contains(got, c.want)) {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
	}
	// What GoogleTest writes: disabled tests are counted apart.
	google := `<testsuites tests="2" failures="0" disabled="1" errors="0" name="AllTests">` +
		`<testsuite name="S" tests="2" failures="0" disabled="1" skipped="0" errors="0">` +
		`<testcase name="A" status="run" result="completed" classname="S"/>` +
		`<testcase name="DISABLED_B" status="notrun" result="suppressed" classname="S"/></testsuite></testsuites>`
	disabled := &isolation.Baseline{Passed: []string{"AllTests/S S A"}, Skipped: []string{"AllTests/S S DISABLED_B"}}
	if got := foundKinds(t, isolation.JUnit{File: "r.xml"}, left(t, "r.xml", google, disabled)); got != "keep" {
		t.Errorf("GoogleTest: %s", got)
	}
}

var manyAttributes = func() (text string) {
	for i := range 100 {
		text += fmt.Sprintf(" a%d=\"\"", i)
	}
	return text
}()

func FuzzJUnit(f *testing.F) {
	f.Add([]byte(goodJUnit), 0)
	f.Add([]byte(`<testsuite><testcase name="a"/></testsuite>`), 1)
	f.Fuzz(func(t *testing.T, text []byte, min int) {
		fuzzReport(t, isolation.JUnit{File: "r.xml", MinTests: min}, left(t, "r.xml", string(text), nil))
	})
}
