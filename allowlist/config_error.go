// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrConfig matches every *ConfigError: a policy that was refused.
var ErrConfig = errors.New("allowlist: policy refused")

// Problem is one thing that is wrong with a policy, and the way out.
type Problem struct {
	File string // name of the file; "policy" for Load, "config" for New and Narrow
	Line int    // in File, from 1; 0 if there is none
	Rule string // where in the policy, and what is wrong
	Fix  string // what to write instead
}

// Error is the problem on one line.
func (p Problem) Error() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s; %s", p.File, p.Rule, p.Fix)
	}
	return fmt.Sprintf("%s:%d: %s; %s", p.File, p.Line, p.Rule, p.Fix)
}

// ConfigError holds everything that is wrong with a policy, in the order of the file. errors.Is finds ErrConfig in it.
type ConfigError struct {
	Problems []Problem
}

// maxProblems is the number of problems that Error prints: more than a person mends at a time.
const maxProblems = 100

// Error lists the problems, one per line, at most 100.
func (e *ConfigError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %d problem(s)", ErrConfig, len(e.Problems))
	for i, p := range e.Problems {
		if i == maxProblems {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Problems)-maxProblems)
			break
		}
		b.WriteString("\n  " + p.Error())
	}
	return b.String()
}

// Unwrap returns ErrConfig and the problems.
func (e *ConfigError) Unwrap() []error {
	errs := []error{ErrConfig}
	for _, p := range e.Problems {
		errs = append(errs, p)
	}
	return errs
}

// problems collects what is wrong. A policy is refused for all of it at once.
type problems []Problem

// at adds a problem.
func (ps *problems) at(o origin, rule, fix string) {
	if o.field != "" {
		rule = o.field + ": " + rule
	}
	*ps = append(*ps, Problem{File: o.file, Line: o.line, Rule: rule, Fix: fix})
}

// err is the error for the problems, or nil if there is none.
func (ps *problems) err() error {
	if len(*ps) == 0 {
		return nil
	}
	slices.SortStableFunc(*ps, func(a, b Problem) int { return a.Line - b.Line })
	return &ConfigError{Problems: *ps}
}
