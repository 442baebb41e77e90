// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"strconv"
	"strings"
)

// point reads a test: "ok" or "not ok", a number, a name, and a directive. What was read one level deeper since the
// last test is part of it.
func (p *tap) point(depth int, body string) string {
	t, rule := parsePoint(body, p.levels[depth].n+1)
	if rule != "" {
		return rule
	}
	level := &p.levels[depth]
	if level.n++; level.trailed || level.plan >= 0 && level.n > level.plan {
		return "a test beyond the plan"
	}
	if level.seen[t.name] {
		p.r.find(FindingForged, t.name, "it is in its list twice")
	}
	level.seen[t.name] = true
	all := []tapPoint{t}
	for d := depth + 1; d < len(p.levels); d++ {
		if d > depth+1 && (p.levels[d].n > 0 || p.levels[d].plan >= 0) {
			return "tests that are part of no other"
		}
	}
	if depth+1 < len(p.levels) {
		inner := &p.levels[depth+1]
		if rule := inner.complete(); rule != "" {
			return rule
		}
		for _, part := range inner.points {
			if part.state == failed && t.state == passed {
				p.r.find(FindingForged, t.name, "it passed and its part %q failed", part.name)
			}
			if !p.r.named(len(t.name) + len(part.name)) {
				return "its names are too long"
			}
			part.name = t.name + " > " + part.name
			all = append(all, part)
		}
		p.levels = p.levels[:depth+1]
	}
	p.after = true
	if depth > 0 {
		level = &p.levels[depth]
		level.points = append(level.points, all...)
		if len(level.points) > MaxTests {
			return fmt.Sprintf("more than %d tests", MaxTests)
		}
		return ""
	}
	for _, one := range all {
		p.r.begin(one.name)
		p.r.end(one.name, one.state)
	}
	return ""
}

// complete returns what is missing at the end of a list.
func (l *tapLevel) complete() string {
	switch {
	case l.n == 0 && l.plan < 0:
		return "" // nothing was there
	case l.plan < 0:
		return "a list of tests has no plan"
	case l.n != l.plan:
		return fmt.Sprintf("a list has %d of %d tests", l.n, l.plan)
	}
	return ""
}

// finish looks at what must not be open at the end.
func (p *tap) finish() {
	if p.yaml != "" {
		p.r.find(FindingUnfinished, "", "a block of details does not end")
	}
	for _, inner := range p.levels[1:] {
		if inner.n > 0 || inner.plan > 0 {
			p.r.find(FindingUnfinished, "", "the report ends inside a test")
		}
	}
	if rule := p.levels[0].complete(); rule != "" {
		p.r.find(FindingUnfinished, "", "%s", rule)
	}
}

// parsePoint splits a test line.
func parsePoint(body string, want int) (t tapPoint, rule string) {
	rest, ok := strings.CutPrefix(body, "ok")
	t.state = passed
	if !ok {
		if rest, ok = strings.CutPrefix(body, "not ok"); !ok {
			return t, "it is no line of the protocol"
		}
		t.state = failed
	}
	if rest != "" && rest[0] != ' ' {
		return t, "it is no line of the protocol"
	}
	rest = strings.TrimLeft(rest, " ")
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	if digits > 0 && (digits == len(rest) || rest[digits] == ' ') {
		if n, err := strconv.Atoi(rest[:digits]); err != nil || n != want {
			return t, fmt.Sprintf("test number %s, and %d is the next one", shorten(rest[:digits]), want)
		}
		rest = strings.TrimLeft(rest[digits:], " ")
	}
	name, directive := cutDirective(rest)
	if word := strings.ToLower(directive); strings.HasPrefix(word, "skip") || strings.HasPrefix(word, "todo") {
		t.state = skipped
	}
	name = strings.TrimSpace(strings.TrimPrefix(name, "-"))
	if name == "" {
		name = fmt.Sprintf("#%d", want)
	}
	t.name = name
	return t, ""
}

// cutDirective splits at the first "#" that has a space before it and no backslash. An odd number of backslashes would
// quote it.
func cutDirective(s string) (name, directive string) {
	quoted := false
	for i := range len(s) {
		switch {
		case quoted:
			quoted = false
		case s[i] == '\\':
			quoted = true
		case s[i] == '#' && (i == 0 || s[i-1] == ' '):
			return s[:i], strings.TrimSpace(s[i+1:])
		}
	}
	return s, ""
}
