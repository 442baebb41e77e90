// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"strconv"
	"strings"
)

// TAP reads the Test Anything Protocol, version 13 or 14, from the standard output: `node --test
// --test-reporter=tap`, `prove --verbose` of one file, and others. It keeps a variant under the same conditions as
// [GoTest]. A test that is marked TODO has not passed, whatever it says.
//
// Every line must be one of the protocol. What a program prints beside it makes the report a malformed one.
type TAP struct {
	MinTests int // 0: as many as pass in the accepted tree
}

// Needs asks for all of the output.
func (TAP) Needs() JudgeNeeds { return JudgeNeeds{Stdout: true} }

// Judge compares the report with the baseline.
func (t TAP) Judge(ctx context.Context, e Evaluation) (Ruling, error) {
	return judgeReport(ctx, e, t.MinTests, readTAP)
}

// Measure takes the baseline.
func (t TAP) Measure(ctx context.Context, e Evaluation) (*Baseline, error) {
	return measureReport(ctx, e, t.MinTests, readTAP)
}

// tapPoint is a line that begins with "ok" or "not ok".
type tapPoint struct {
	name  string
	state outcome
}

// tapLevel is a list of tests at one indentation.
type tapLevel struct {
	points  []tapPoint      // at the innermost level that has ended: waiting for the test that they are part of
	seen    map[string]bool // names of this list
	n       int             // tests so far
	plan    int             // -1: none yet
	trailed bool            // the plan came after tests, so that no more may follow
}

// tap is the state of a parser.
type tap struct {
	r      *report
	levels []tapLevel // by indentation, in steps of 4 spaces
	yaml   string     // the indentation of the block that is open, with a mark before it; "" if none is
	after  bool       // the last line was a test, so a block may follow
	ok     bool
}

const maxTAPDepth = 32

func readTAP(e Evaluation, r *report) {
	p := tap{r: r}
	n := 0
	for raw := range strings.Lines(string(stdout(e, r))) {
		n++
		text := strings.TrimRight(raw, "\r\n")
		if !p.ok {
			if strings.TrimSpace(text) == "" {
				continue
			}
			if text != "TAP version 13" && text != "TAP version 14" {
				r.find(FindingMalformed, "", "line %d does not name version 13 or 14 of the protocol", n)
				return
			}
			p.ok, p.levels = true, []tapLevel{newTAPLevel()}
			continue
		}
		if rule := p.line(text); rule != "" {
			r.find(FindingMalformed, "", "line %d: %s", n, rule)
			return
		}
		if len(r.findings) > 0 && r.counts[FindingTooLarge] > 0 {
			return
		}
	}
	if p.ok {
		p.finish()
	}
}

func newTAPLevel() tapLevel { return tapLevel{seen: map[string]bool{}, plan: -1} }

// line takes one line into account and returns what is wrong with it.
func (p *tap) line(text string) string {
	if p.yaml != "" {
		if text == p.yaml[1:]+"..." {
			p.yaml = ""
		}
		return ""
	}
	body := strings.TrimLeft(text, " ")
	indent := len(text) - len(body)
	switch {
	case body == "" || strings.HasPrefix(body, "#"):
		p.comment(indent, body)
		return ""
	case body == "---" && p.after && indent%4 == 2:
		p.yaml, p.after = "-"+text[:indent], false
		return ""
	case indent%4 != 0:
		return "it is indented by no multiple of 4"
	case strings.HasPrefix(body, "Bail out!"):
		p.r.find(FindingFailed, "", "%s", body)
		return ""
	case strings.HasPrefix(body, "pragma "):
		return ""
	}
	depth := indent / 4
	if depth >= maxTAPDepth {
		return "tests are nested too deep"
	}
	for len(p.levels) <= depth {
		p.levels = append(p.levels, newTAPLevel())
	}
	p.after = false
	if plan, ok := strings.CutPrefix(body, "1.."); ok {
		return p.plan(depth, plan)
	}
	return p.point(depth, body)
}

// comment looks for the summary that node writes after everything else, which must not tell another story.
func (p *tap) comment(indent int, body string) {
	top := p.levels[0]
	if indent > 0 || top.plan < 0 || top.n != top.plan {
		return
	}
	fields := strings.Fields(strings.TrimLeft(body, "# "))
	if len(fields) == 2 && (fields[0] == "fail" || fields[0] == "cancelled") && strings.Trim(fields[1], "0") != "" {
		p.r.find(FindingForged, "", "the summary says %q, and no test of the list failed", strings.Join(fields, " "))
	}
}

// plan reads how many tests a list has.
func (p *tap) plan(depth int, text string) string {
	count, _, _ := strings.Cut(text, "#")
	n, err := strconv.Atoi(strings.TrimSpace(count))
	level := &p.levels[depth]
	switch {
	case err != nil || n < 0 || n > MaxTests:
		return "the plan is no number of tests"
	case level.plan >= 0:
		return "a second plan"
	case level.n > 0 && level.n != n:
		return "the plan has another number than the tests before it"
	}
	level.plan, level.trailed = n, level.n > 0
	return ""
}
