// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/google/go-cmp/cmp"
)

// endedWith is the result of a run that exited by itself.
func endedWith(code int) *executor.Result {
	return &executor.Result{Cause: executor.CauseExited, ExitCode: code}
}

// printed is an evaluation of a run that wrote text and exited with 0.
func printed(text string, b *isolation.Baseline) isolation.Evaluation {
	return isolation.Evaluation{Result: endedWith(0), Stdout: []byte(text), StdoutComplete: true, Baseline: b}
}

// left is an evaluation of a run that left a file and exited with 0.
func left(t *testing.T, name, text string, b *isolation.Baseline) isolation.Evaluation {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	r := endedWith(0)
	r.Artifacts = []executor.Artifact{{Path: name, Size: int64(len(text)), SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(text)))}}
	return isolation.Evaluation{Result: r, Artifacts: dir, Baseline: b}
}

// foundKinds returns the sorted kinds of what a judge found, "keep", or "error" for anything else.
func foundKinds(t *testing.T, j isolation.Judge, e isolation.Evaluation) string {
	t.Helper()
	ruling, err := j.Judge(t.Context(), e)
	var reject *isolation.RejectError
	switch {
	case ruling == isolation.Keep && err == nil:
		return "keep"
	case ruling == isolation.Reject && errors.As(err, &reject) && len(reject.Findings) > 0 && errors.Is(err, isolation.ErrRejected):
	default:
		t.Errorf("%v, %v", ruling, err)
		return "error"
	}
	var all []string
	for _, f := range reject.Findings {
		if f.Detail == "" || len(f.Detail) > 250 || len(f.Test) > 250 {
			t.Errorf("finding %+v", f)
		}
		all = append(all, f.Kind.String())
	}
	noReport := slices.ContainsFunc(all, func(k string) bool {
		return slices.Contains([]string{"no-report", "too-large", "malformed", "forged"}, k)
	})
	if errors.Is(err, isolation.ErrNoResult) != noReport {
		t.Errorf("%v: is ErrNoResult %v", all, !noReport)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// judges are the shipped ones with a report in which everything is in order.
func judges(t *testing.T) map[string]struct {
	judge isolation.Measuring
	eval  isolation.Evaluation
	base  *isolation.Baseline
} {
	t.Helper()
	goBase := &isolation.Baseline{Passed: []string{"m TestA", "m TestA/sub"}, Skipped: []string{"m TestB"}}
	tapBase := &isolation.Baseline{Passed: []string{"outer", "outer > inner"}, Skipped: []string{"outer > later", "todo"}}
	unitBase := &isolation.Baseline{Passed: []string{"/pytest m.T test_a", "/pytest m.T test_b[1-x]"}, Skipped: []string{"/pytest m test_c"}}
	return map[string]struct {
		judge isolation.Measuring
		eval  isolation.Evaluation
		base  *isolation.Baseline
	}{
		"go test": {isolation.GoTest{}, printed(goodGoTest, goBase), goBase},
		"TAP":     {isolation.TAP{}, printed(goodTAP, tapBase), tapBase},
		"JUnit":   {isolation.JUnit{File: "out/report.xml"}, left(t, "out/report.xml", goodJUnit, unitBase), unitBase},
	}
}

// Each judge keeps its good report, measures the baseline that it is compared with, and keeps it then.
func TestJudgesKeep(t *testing.T) {
	t.Parallel()
	for name, c := range judges(t) {
		if got := foundKinds(t, c.judge, c.eval); got != "keep" {
			t.Errorf("%s: %s", name, got)
		}
		unmeasured := c.eval
		unmeasured.Baseline = nil
		base, err := c.judge.Measure(t.Context(), unmeasured)
		if diff := cmp.Diff(c.base, base); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
		if got := foundKinds(t, c.judge, unmeasured); got != "no-baseline" {
			t.Errorf("%s, not measured: %s", name, got)
		}
	}
}

// Whatever the report says, a run that did not exit by itself with 0 is no pass, nor one against another tree.
func TestJudgesReject(t *testing.T) {
	t.Parallel()
	for name, c := range judges(t) {
		artifacts := c.eval.Result.Artifacts
		with := func(r executor.Result) *executor.Result { r.Artifacts = artifacts; return &r }
		for what, spoil := range map[string]struct {
			change func(e *isolation.Evaluation)
			want   string
		}{
			"no exit":   {func(e *isolation.Evaluation) { e.Result = with(executor.Result{}) }, "run"},
			"exit 1":    {func(e *isolation.Evaluation) { e.Result = with(*endedWith(1)) }, "run"},
			"a timeout": {func(e *isolation.Evaluation) { e.Result = with(executor.Result{Cause: executor.CauseWallTimeout}) }, "run"},
			"forged":    {func(e *isolation.Evaluation) { e.Result = with(executor.Result{Cause: 200}) }, "run"},
			"met a limit": {func(e *isolation.Evaluation) {
				r := with(*endedWith(0))
				r.Hits = []executor.Hit{{Limit: "Disk"}}
				e.Result = r
			}, "run"},
			"vanished": {func(e *isolation.Evaluation) {
				e.Baseline = &isolation.Baseline{Passed: append([]string{"gone"}, c.base.Passed...), Skipped: c.base.Skipped}
			}, "too-few vanished"},
			"skipped anew": {func(e *isolation.Evaluation) { e.Baseline = &isolation.Baseline{Passed: c.base.Passed} }, "skipped"},
			"empty base":   {func(e *isolation.Evaluation) { e.Baseline = &isolation.Baseline{Skipped: c.base.Skipped} }, "keep"},
		} {
			e := c.eval
			spoil.change(&e)
			if got := foundKinds(t, c.judge, e); got != spoil.want {
				t.Errorf("%s, %s: got %q, want %q", name, what, got, spoil.want)
			}
			if e.Baseline == c.base {
				if base, err := c.judge.Measure(t.Context(), e); base != nil || !errors.Is(err, isolation.ErrRejected) {
					t.Errorf("%s, %s: measured %+v, %v", name, what, base, err)
				}
			}
		}
		e := c.eval
		e.Result = nil
		if got := foundKinds(t, c.judge, e); !strings.Contains(got, "run") {
			t.Errorf("%s without a result: %s", name, got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if ruling, err := c.judge.Judge(ctx, c.eval); ruling != isolation.Reject || !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v, %v", name, ruling, err)
		}
		if base, err := c.judge.Measure(ctx, c.eval); base != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v, %v", name, base, err)
		}
		if got := foundKinds(t, c.judge, isolation.Evaluation{}); got == "keep" {
			t.Errorf("%s keeps the zero evaluation", name)
		}
	}
}

func TestMinTests(t *testing.T) {
	t.Parallel()
	c := judges(t)["go test"]
	for min, want := range map[int]string{-1: "too-few", 0: "keep", 1: "keep", 2: "keep", 3: "too-few"} {
		if got := foundKinds(t, isolation.GoTest{MinTests: min}, c.eval); got != want {
			t.Errorf("MinTests %d: %s", min, got)
		}
	}
	// A smaller number does not let a test vanish.
	e := c.eval
	e.Baseline = &isolation.Baseline{Passed: []string{"m TestA", "m TestGone"}, Skipped: []string{"m TestB"}}
	if got := foundKinds(t, isolation.GoTest{MinTests: 1}, e); got != "vanished" {
		t.Errorf("a test has vanished: %s", got)
	}
}

// Many findings do not fill a log, and none of them is lost from the count.
func TestManyFindings(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `{"Action":"run","Package":"m","Test":"Test%s%d"}`+"\n", strings.Repeat("x", 300), i)
	}
	_, err := isolation.GoTest{}.Judge(t.Context(), printed(b.String(), &isolation.Baseline{}))
	var reject *isolation.RejectError
	if !errors.As(err, &reject) || len(reject.Findings) > 20 || !strings.Contains(err.Error(), "and 991 more") || len(err.Error()) > 6000 {
		t.Errorf("%v", err)
	}
}

func TestOutputMustBeWhole(t *testing.T) {
	t.Parallel()
	for name, c := range judges(t) {
		if name == "JUnit" {
			continue // it has no use for the output
		}
		for what, change := range map[string]func(e *isolation.Evaluation){
			"too-large":  func(e *isolation.Evaluation) { e.StdoutComplete = false },
			"too-large ": func(e *isolation.Evaluation) { e.Stdout = append(e.Stdout, make([]byte, isolation.MaxReport)...) },
			"no-report":  func(e *isolation.Evaluation) { e.Stdout = nil },
		} {
			e := c.eval
			e.Stdout = slices.Clone(e.Stdout)
			change(&e)
			if got := foundKinds(t, c.judge, e); !strings.Contains(got, strings.TrimSpace(what)) {
				t.Errorf("%s, %s: %s", name, what, got)
			}
		}
	}
}

// Every prefix of a good report, and each without one of its lines, is no pass: a run that dies early leaves one.
func TestTruncatedReports(t *testing.T) {
	t.Parallel()
	for name, c := range judges(t) {
		text := string(c.eval.Stdout)
		if name == "JUnit" {
			text = goodJUnit
		}
		eval := func(text string) isolation.Evaluation {
			if name == "JUnit" {
				return left(t, "out/report.xml", text, c.base)
			}
			return printed(text, c.base)
		}
		whole := strings.TrimRight(text, "\n")
		if name == "TAP" {
			whole = text[:strings.LastIndex(text, "1..2")+4] // what follows are comments
		}
		for size := range len(whole) {
			if name == "JUnit" && size%7 > 0 {
				continue // a file for each takes time
			}
			if got := foundKinds(t, c.judge, eval(text[:size])); got == "keep" {
				t.Errorf("%s: the first %d bytes are kept: %q", name, size, text[:size])
			}
		}
	}
}

// A small report whose nested names would fill the memory of the host.
func TestLongNames(t *testing.T) {
	t.Parallel()
	long, many := strings.Repeat("x", 4<<20), 50
	suite := `<testsuite name="` + long + `">` + strings.Repeat(`<testcase name="a"/>`, many) + "</testsuite>"
	tap := "TAP version 13\n"
	for i := range many {
		tap += fmt.Sprintf("    ok %d - p%d\n", i+1, i+1)
	}
	tap += fmt.Sprintf("    1..%d\nok 1 - %s\n1..1\n", many, long)
	base := &isolation.Baseline{}
	for name, got := range map[string]string{
		"JUnit": foundKinds(t, isolation.JUnit{File: "r.xml"}, left(t, "r.xml", suite, base)),
		"TAP":   foundKinds(t, isolation.TAP{}, printed(tap, base)),
	} {
		if !strings.Contains(got, "too-large") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	met := endedWith(0)
	met.Hits = []executor.Hit{{Limit: "Processes"}}
	for want, results := range map[string][]*executor.Result{
		"keep": {endedWith(0)},
		"run":  {nil, {}, endedWith(1), endedWith(-1), met, {Cause: executor.CauseSignalled}, {Cause: executor.CauseCancelled}, {Cause: 99}},
	} {
		for _, r := range results {
			if got := foundKinds(t, isolation.ExitStatus{}, isolation.Evaluation{Result: r}); got != want {
				t.Errorf("%+v: %s", r, got)
			}
		}
	}
}

func TestJudgeNeeds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		judge isolation.Demanding
		want  isolation.JudgeNeeds
	}{
		{isolation.GoTest{}, isolation.JudgeNeeds{Args: []string{"-json"}, Stdout: true}},
		{isolation.TAP{}, isolation.JudgeNeeds{Stdout: true}},
		{isolation.JUnit{File: "a.xml"}, isolation.JudgeNeeds{Artifacts: []string{"a.xml"}}},
	} {
		if diff := cmp.Diff(c.want, c.judge.Needs()); diff != "" {
			t.Errorf("%T: %s", c.judge, diff)
		}
	}
}

// A file that somebody put in the place of the artifact is not the report.
func TestJUnitReadsTheArtifact(t *testing.T) {
	t.Parallel()
	c := judges(t)["JUnit"]
	for what, change := range map[string]func(e *isolation.Evaluation, path string) error{
		"not recorded": func(e *isolation.Evaluation, _ string) error { e.Result = endedWith(0); return nil },
		"recorded twice": func(e *isolation.Evaluation, _ string) error {
			e.Result.Artifacts = slices.Repeat(e.Result.Artifacts, 2)
			return nil
		},
		"no directory": func(e *isolation.Evaluation, _ string) error { e.Artifacts = ""; return nil },
		"another size": func(e *isolation.Evaluation, _ string) error {
			e.Result.Artifacts[0].Size = isolation.MaxReport + 1
			return nil
		},
		"replaced": func(_ *isolation.Evaluation, path string) error {
			return os.WriteFile(path, []byte(goodJUnit+" "), 0o600)
		},
		"removed": func(_ *isolation.Evaluation, path string) error { return os.Remove(path) },
		"a directory": func(_ *isolation.Evaluation, path string) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		},
		"a link outside": func(_ *isolation.Evaluation, path string) error {
			return errors.Join(os.Rename(path, path+"2"), os.Symlink(path+"2", path))
		},
	} {
		e := left(t, "out/report.xml", goodJUnit, c.base)
		if err := change(&e, filepath.Join(e.Artifacts, "out", "report.xml")); err != nil {
			t.Fatal(err)
		}
		if got := foundKinds(t, c.judge, e); got == "keep" {
			t.Errorf("%s: kept", what)
		}
	}
	for _, name := range []string{"", "/etc/passwd", "../report.xml", "a\\b", "."} {
		e := left(t, "out/report.xml", goodJUnit, c.base)
		e.Result.Artifacts[0].Path = name
		if got := foundKinds(t, isolation.JUnit{File: name}, e); !strings.Contains(got, "no-report") {
			t.Errorf("%q: %s", name, got)
		}
	}
}
