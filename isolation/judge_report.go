// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// What a report may be at most. An honest one is far below it.
const (
	MaxReport = 16 << 20 // bytes
	MaxTests  = 100_000  // tests, and nested groups of them
)

// outcome says what a report has about one test. The worse of two is the greater one.
type outcome uint8

const (
	unfinished outcome = iota
	passed
	skipped
	failed
)

// report is what a parser found: the outcome of each test, and whatever is wrong with the report as such.
type report struct {
	tests    map[string]outcome
	findings []Finding
	counts   map[FindingKind]int
	names    int // bytes
}

// maxFindings of a kind are listed; the rest is counted.
const maxFindings = 10

func newReport() *report { return &report{tests: map[string]outcome{}, counts: map[FindingKind]int{}} }

func (r *report) find(k FindingKind, test, format string, args ...any) {
	if r.counts[k]++; r.counts[k] <= maxFindings {
		r.findings = append(r.findings, Finding{Kind: k, Test: shorten(test), Detail: shorten(fmt.Sprintf(format, args...))})
	}
}

// maxNames bounds the names of all tests together, bytes. Those of nested groups repeat in the names of their tests, so
// a small report could fill the host's memory with them.
const maxNames = 4 * MaxReport

// named reports whether there is room for another name.
func (r *report) named(bytes int) bool {
	r.names += bytes
	if r.names > maxNames {
		r.find(FindingTooLarge, "", "the names of the tests have more than %d bytes", maxNames)
	}
	return r.names <= maxNames
}

// begin notes that a test has begun. A second time is a second story about the same test, and one of them is wrong.
func (r *report) begin(test string) {
	if _, twice := r.tests[test]; twice {
		r.find(FindingForged, test, "it is in the report twice")
	}
	if len(r.tests) >= MaxTests {
		r.find(FindingTooLarge, test, "more than %d tests", MaxTests)
		return
	}
	r.tests[test] = unfinished
}

// end notes the outcome of a test that has begun.
func (r *report) end(test string, o outcome) {
	switch before, begun := r.tests[test]; {
	case !begun:
		r.find(FindingForged, test, "it has a result and never began")
	case before != unfinished:
		r.find(FindingForged, test, "it has two results")
	}
	if len(r.tests) < MaxTests || r.tests[test] != unfinished {
		r.tests[test] = max(r.tests[test], o) // the order of lines does not hide a failure
	}
}

// with returns the sorted names of the tests that have an outcome.
func (r *report) with(o outcome) []string {
	var names []string
	for name, is := range r.tests {
		if is == o {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ended demands that the run exited by itself with 0, and met no limit on the way.
func (r *report) ended(e Evaluation) {
	switch {
	case e.Result == nil:
		r.find(FindingRun, "", "there is no result of a run")
	case !e.Result.OK():
		r.find(FindingRun, "", "the run ended with %v, exit code %d", e.Result.Cause, e.Result.ExitCode)
	case len(e.Result.Hits) > 0:
		r.find(FindingRun, "", "the run met the limit %s", e.Result.Hits[0].Limit)
	}
}

// outcomes demands that every test that began passed or was skipped, and that there are enough.
func (r *report) outcomes(enough int) {
	for _, name := range r.with(failed) {
		r.find(FindingFailed, name, "it failed")
	}
	for _, name := range r.with(unfinished) {
		r.find(FindingUnfinished, name, "it began and has no result; the run ended under it")
	}
	if len(r.tests) == 0 && len(r.findings) == 0 {
		r.find(FindingNoReport, "", "there is no test in the report")
	}
	if n := len(r.with(passed)); n < max(enough, 1) {
		r.find(FindingTooFew, "", "%d test(s) passed; at least %d must", n, max(enough, 1))
	}
}

// against demands what the accepted tree has shown: the same tests pass, and none is skipped that was not.
func (r *report) against(b *Baseline) {
	for _, name := range b.Passed {
		if _, there := r.tests[name]; !there {
			r.find(FindingVanished, name, "it passed before and is not in the report")
		}
	}
	for _, name := range r.with(skipped) {
		if _, before := slices.BinarySearch(b.Skipped, name); !before {
			r.find(FindingSkipped, name, "it is skipped, and was not before")
		}
	}
}

// err is nil if nothing was found.
func (r *report) err() error {
	if len(r.findings) == 0 {
		return nil
	}
	for k := FindingNoReport; int(k) < len(findingNames); k++ {
		if more := r.counts[k] - maxFindings; more > 0 {
			r.findings = append(r.findings, Finding{Kind: k, Detail: fmt.Sprintf("and %d more", more)})
		}
	}
	slices.SortStableFunc(r.findings, func(a, b Finding) int { return int(a.Kind) - int(b.Kind) })
	return &RejectError{Findings: r.findings}
}

// judgeReport is what the parsing judges have in common.
func judgeReport(ctx context.Context, e Evaluation, minTests int, read func(Evaluation, *report)) (Ruling, error) {
	if err := ctx.Err(); err != nil {
		return Reject, context.Cause(ctx)
	}
	r := newReport()
	r.ended(e)
	read(e, r)
	enough := minTests
	switch {
	case e.Baseline == nil:
		r.find(FindingBaseline, "", "nobody has measured what the accepted tree passes")
	case minTests == 0:
		enough = len(e.Baseline.Passed)
	}
	r.require(minTests)
	r.outcomes(enough)
	if e.Baseline != nil {
		r.against(sorted(e.Baseline))
	}
	if err := r.err(); err != nil {
		return Reject, err
	}
	return Keep, nil
}

// measureReport takes a baseline from an evaluation that has nothing to be compared with.
func measureReport(ctx context.Context, e Evaluation, minTests int, read func(Evaluation, *report)) (*Baseline, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	r := newReport()
	r.ended(e)
	read(e, r)
	r.require(minTests)
	r.outcomes(minTests)
	if err := r.err(); err != nil {
		return nil, err
	}
	return &Baseline{Passed: r.with(passed), Skipped: r.with(skipped)}, nil
}

func (r *report) require(minTests int) {
	if minTests < 0 {
		r.find(FindingTooFew, "", "MinTests is %d; a number below 0 has no meaning", minTests)
	}
}

// sorted returns a baseline that can be searched, whoever made it.
func sorted(b *Baseline) *Baseline {
	if slices.IsSorted(b.Skipped) {
		return b
	}
	return &Baseline{Passed: b.Passed, Skipped: slices.Sorted(slices.Values(b.Skipped))}
}

// stdout returns the report that a run wrote to its standard output; nil, with a finding, if it cannot be relied on.
func stdout(e Evaluation, r *report) []byte {
	switch {
	case len(e.Stdout) > MaxReport:
		r.find(FindingTooLarge, "", "%d bytes of output; at most %d", len(e.Stdout), MaxReport)
	case !e.StdoutComplete:
		r.find(FindingTooLarge, "", "the output is not whole")
	case len(e.Stdout) == 0:
		r.find(FindingNoReport, "", "the run wrote nothing to its standard output")
	default:
		return e.Stdout
	}
	return nil
}

// shorten keeps a text of the variant from filling a log.
func shorten(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
