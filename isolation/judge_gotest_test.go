// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"strings"
	"testing"

	"github.com/evoseal/containment/isolation"
)

const goodGoTest = `{"Time":"2026-11-29T22:39:06.44Z","Action":"start","Package":"m"}
{"ImportPath":"m","Action":"build-output","Output":"# a warning of the linker\n"}
{"Action":"run","Package":"m","Test":"TestA"}
{"Action":"output","Package":"m","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"run","Package":"m","Test":"TestA/sub"}
{"Action":"output","Package":"m","Test":"TestA/sub","Output":"{\"Action\":\"fail\"}\n"}
{"Action":"pass","Package":"m","Test":"TestA/sub","Elapsed":0}
{"Action":"attr","Package":"m","Test":"TestA","Key":"k","Value":"v"}
{"Action":"pause","Package":"m","Test":"TestA"}
{"Action":"cont","Package":"m","Test":"TestA"}
{"Action":"pass","Package":"m","Test":"TestA","Elapsed":0.1}
{"Action":"run","Package":"m","Test":"TestB"}
{"Action":"skip","Package":"m","Test":"TestB","Elapsed":0}
{"Action":"start","Package":"m/none"}
{"Action":"skip","Package":"m/none","Elapsed":0}
{"Action":"pass","Package":"m","Elapsed":0.2}
`

func TestGoTestReports(t *testing.T) {
	t.Parallel()
	const end = `{"Action":"pass","Package":"m","Elapsed":0.2}` + "\n"
	before := func(lines string) string { return strings.Replace(goodGoTest, end, lines+"\n"+end, 1) }
	base := &isolation.Baseline{Passed: []string{"m TestA", "m TestA/sub"}, Skipped: []string{"m TestB"}}
	for what, c := range map[string]struct{ text, want string }{
		"one more test":            {before(`{"Action":"run","Package":"m","Test":"N"}` + "\n" + `{"Action":"pass","Package":"m","Test":"N"}`), "keep"},
		"with \\r\\n":              {strings.ReplaceAll(goodGoTest, "\n", "\r\n"), "keep"},
		"empty":                    {"", "no-report too-few vanished"},
		"only white space":         {"\n \n", "no-report too-few vanished"},
		"exit in init":             {`{"Action":"start","Package":"m"}` + "\n" + end, "no-report too-few vanished"},
		"no result of the package": {strings.Replace(goodGoTest, end, "", 1), "unfinished"},
		"no result of a test":      {before(`{"Action":"run","Package":"m","Test":"N"}`), "unfinished"},
		"a failure":                {before(`{"Action":"run","Package":"m","Test":"N"}` + "\n" + `{"Action":"fail","Package":"m","Test":"N"}`), "failed"},
		"a failure, then a pass": {before(`{"Action":"run","Package":"m","Test":"N"}` + "\n" + `{"Action":"fail","Package":"m","Test":"N"}` +
			"\n" + `{"Action":"pass","Package":"m","Test":"N"}`), "failed forged"},
		"a pass, then a failure": {before(`{"Action":"fail","Package":"m","Test":"TestA"}`), "failed forged too-few"},
		"twice":                  {before(`{"Action":"run","Package":"m","Test":"TestA"}` + "\n" + `{"Action":"pass","Package":"m","Test":"TestA"}`), "forged"},
		"never began":            {before(`{"Action":"pass","Package":"m","Test":"N"}`), "forged"},
		"after the end":          {goodGoTest + `{"Action":"run","Package":"m","Test":"N"}` + "\n" + `{"Action":"pass","Package":"m","Test":"N"}`, "forged"},
		"two ends":               {goodGoTest + end, "forged"},
		"a failed package":       {strings.Replace(goodGoTest, end, strings.Replace(end, "pass", "fail", 1), 1), "failed"},
		"it does not build":      {goodGoTest + `{"ImportPath":"n","Action":"build-fail"}`, "failed"},
		"skipped anew":           {before(`{"Action":"run","Package":"m","Test":"N"}` + "\n" + `{"Action":"skip","Package":"m","Test":"N"}`), "skipped"},
		"passed before, skipped": {strings.Replace(goodGoTest, `"pass","Package":"m","Test":"TestA",`, `"skip","Package":"m","Test":"TestA",`, 1), "skipped too-few"},
		"other text":             {"=== RUN TestA\n--- PASS: TestA\nPASS\n", "malformed too-few vanished"},
		"text in between":        {before("PASS"), "malformed"},
		"a number":               {before("7"), "malformed"},
		"a list":                 {before("[]"), "malformed"},
		"null":                   {before("null"), "malformed"},
		"two on a line":          {before(`{"Action":"start","Package":"n"}{"Action":"pass","Package":"n"}`), "malformed"},
		"an unknown action":      {before(`{"Action":"PASS","Package":"m","Test":"N"}`), "malformed"},
		"run of a package":       {before(`{"Action":"run","Package":"m"}`), "malformed"},
		"no action":              {before(`{"Package":"m"}`), "malformed"},
		"no package":             {before(`{"Action":"pass","Test":"N"}`), "malformed"},
		"two packages in one":    {before(`{"Action":"run","Package":"m TestA","Test":"N"}`), "malformed"},
		"not UTF-8":              {before("{\"Action\":\"\xff\",\"Package\":\"m\"}"), "malformed"},
		"nested too deep":        {before(strings.Repeat("[", 1<<16)), "malformed"},
	} {
		got := foundKinds(t, isolation.GoTest{}, printed(c.text, base))
		if got != c.want && !(c.want == "malformed" && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
	}
}

func FuzzGoTest(f *testing.F) {
	f.Add([]byte(goodGoTest), 0)
	f.Add([]byte(`{"Action":"pass","Package":"m"}`), 3)
	f.Fuzz(func(t *testing.T, text []byte, min int) {
		fuzzReport(t, isolation.GoTest{MinTests: min}, printed(string(text), nil))
	})
}

// fuzzReport: no text panics, and what is measured as the baseline is kept against itself.
func fuzzReport(t *testing.T, j isolation.Measuring, e isolation.Evaluation) {
	t.Helper()
	base, err := j.Measure(t.Context(), e)
	if (base == nil) == (err == nil) {
		t.Fatalf("measured %+v, %v", base, err)
	}
	if base != nil {
		if e.Baseline = base; len(base.Passed) == 0 || foundKinds(t, j, e) != "keep" {
			t.Fatalf("measured %+v and not kept", base)
		}
		e.Baseline = &isolation.Baseline{Passed: append([]string{"another test"}, base.Passed...), Skipped: base.Skipped}
	} else {
		e.Baseline = &isolation.Baseline{Passed: []string{"another test"}}
	}
	if foundKinds(t, j, e) == "keep" {
		t.Fatal("kept, and a test has vanished")
	}
}
