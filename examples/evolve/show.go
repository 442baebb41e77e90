// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/evoseal/containment/examples/evolve/internal/binpack"
	"github.com/evoseal/containment/examples/evolve/internal/report"
	"github.com/evoseal/containment/isolation"
)

// header says where the run stands.
func (p *loop) header() {
	start, best, _ := p.job.scores()
	switch {
	case start == nil:
		p.term.Println(fmt.Sprintf("task      %s, generator %s", filepath.Base(p.o.Tree), p.o.Generator))
	case p.first == 0:
		p.term.Println(fmt.Sprintf("task      bin packing, %s, seed %d; best fit is %.2f %s",
			p.o.Problem, p.o.Seed, start.Value, start.Unit))
	default:
		p.term.Println(fmt.Sprintf("task      bin packing, %s, seed %d; resumed after %d variants at %.2f %s",
			p.o.Problem, p.o.Seed, p.first, best.Value, best.Unit))
	}
	p.term.Println("")
}

// status is the line at the bottom of a terminal.
func (p *loop) status() {
	tried, accepted, screened := len(p.history.all), p.history.accepted(), p.history.screened()
	_, best, _ := p.job.scores()
	p.term.Status(func(time.Duration) string {
		elapsed := time.Since(p.started)
		text := fmt.Sprintf("variant %d of %d · %v", tried+1, p.o.Max, p.b.Status().Stage)
		if best != nil {
			text += fmt.Sprintf(" · best %.2f", best.Value)
		}
		text += fmt.Sprintf(" · %d kept", accepted)
		if screened > 0 {
			text += fmt.Sprintf(" · %d screened", screened)
		}
		return text + fmt.Sprintf(" · %v · %.1f/s", elapsed.Round(time.Second), float64(tried-p.first)/elapsed.Seconds())
	})
}

// line is what the terminal shows of one variant.
func (p *loop) line(e *entry) string {
	verdict := "rejected"
	if e.Accepted {
		verdict = "KEPT    "
	}
	score := strings.Repeat(" ", 7)
	if e.Score != nil {
		score = fmt.Sprintf("%6.2f%%", e.Score.Value)
	}
	note, why := report.Clean(e.Note, 90), ""
	if !e.Accepted && len(e.Reasons) > 0 && e.Score == nil {
		why = report.Clean(because(e.Reasons[0]), 100)
	}
	if note != "" && why != "" {
		note += " · "
	}
	return fmt.Sprintf("%5d  %s %s %5.2fs  %s%s", e.Iteration, verdict, score, e.Took.Seconds(), note, why)
}

// because is the part of a reason that tells one variant from the next: the first test that failed, or else all of it.
func because(reason string) string {
	kind, quoted, _ := strings.Cut(reason, ": ")
	text, err := strconv.Unquote(quoted)
	if err != nil {
		return reason
	}
	for line := range strings.Lines(text) {
		// failed: "example.com/module TestName/sub": it failed
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), `failed: "`); ok {
			name, _, _ = strings.Cut(name, `"`)
			if _, test, ok := strings.Cut(name, " "); ok {
				return test + " failed"
			}
		}
	}
	if i := strings.LastIndex(text, "finding(s)\n"); i >= 0 {
		return strings.TrimSpace(text[i+len("finding(s)\n"):])
	}
	return kind + ": " + strings.TrimPrefix(text, isolation.ErrRejected.Error()+": ")
}

// drawCurve writes the picture of the run so far.
func (p *loop) drawCurve() error {
	start, _, _ := p.job.scores()
	if start == nil {
		return nil
	}
	c := report.Curve{
		Title: fmt.Sprintf("Online bin packing, %s: %d variants compiled and tested", p.o.Problem, len(p.history.all)),
		Unit:  unit, Points: []report.Point{{Value: start.Value, Accepted: true}},
		Levels: []report.Level{{Name: "best fit", Value: start.Value}},
	}
	if job, ok := p.job.(*packing); ok {
		c.Levels = append(c.Levels, report.Level{Name: "first fit", Value: binpack.Excess(job.tested, binpack.FirstFit)})
	}
	for _, e := range p.history.all {
		if e.Score != nil {
			point := report.Point{Variant: e.Iteration, Value: e.Score.Value, Accepted: e.Accepted}
			c.Points = append(c.Points, point)
		}
	}
	svg := c.SVG()
	if err := save(p.l.curve(), svg); err != nil || p.o.Curve == "" {
		return err
	}
	return save(p.o.Curve, svg)
}

// footer is the end of what a run prints.
func (p *loop) footer(summary string) string {
	var b strings.Builder
	st := p.b.Status()
	tried, tested := len(p.history.all), p.history.tested()
	if tested < tried {
		fmt.Fprintf(&b, "\n%d variants, of which %d were compiled and tested in %s, %d kept", tried, tested, st.Executor,
			p.history.accepted())
	} else {
		fmt.Fprintf(&b, "\n%d variants compiled and tested in %s, %d kept", tested, st.Executor, p.history.accepted())
	}
	if n := p.history.screened(); n > 0 {
		fmt.Fprintf(&b, "; %d candidates screened by the host before that", n)
	}
	took, n := p.ended.Sub(p.started).Seconds(), len(p.history.all)-p.first
	fmt.Fprintf(&b, "\n%.0f s for the last %d, %.2f variants per second\n\n", took, n, float64(n)/max(took, 1e-3))
	b.WriteString(summary)
	if files, err := p.job.files(p.l.tree()); err == nil && len(files) == 1 && p.o.Tree == "" {
		path := filepath.Join(p.l.tree(), filepath.FromSlash(evolved))
		fmt.Fprintf(&b, "\n%s is now:\n\n%s\n\n", path, body(files[0].Content))
	}
	fmt.Fprintf(&b, "checkpoint  %v, one for each accepted step, in %s\n", st.Checkpoint, p.l.store())
	if p.o.Tree == "" {
		fmt.Fprintf(&b, "curve       %s\n", p.l.curve())
	}
	return b.String()
}

// body is the evolved function, without what cannot change.
func body(source string) string {
	from := strings.Index(source, "func "+function)
	if from < 0 {
		return ""
	}
	length := strings.Index(source[from:], "\n}")
	if length < 0 {
		return source[from:]
	}
	return source[from : from+length+2]
}
