// SPDX-License-Identifier: Apache-2.0

// Package variant says what a generator of variants is given and what it answers. The loop is the same for all of
// them: a search over expressions, a repair of one-line bugs, a model behind an endpoint, a program of somebody else.
package variant

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/runaway"
)

// Generator makes variants, one at a time. It reads nothing but the State: what it knows can be printed.
type Generator interface {
	// Next answers with the edits of the next variant. The usage of the proposal counts also if there is an error: what
	// was spent was spent. ErrExhausted says that there will be no other variant, which ends the run in good order. Any
	// other error is a failed iteration, and the run goes on as far as its limits let it.
	Next(ctx context.Context, s *State) (Proposal, error)
}

// Proposal is one variant as edits of the files in State.Surface.
type Proposal struct {
	Edits []allowlist.Edit
	Usage runaway.Usage // what it cost to make, with or without edits
	Note  string        // for the line on the terminal, such as "swap < and <=, calc.go:12"; at most one line
}

// State is all that a generator is told. It is data, and has the same names in JSON.
type State struct {
	Iteration int    `json:"iteration"`       // number of the variant that is asked for, from 1
	Task      string `json:"task"`            // what a better variant is, in words
	Surface   []File `json:"surface"`         // the files of the accepted tree that an edit may change, sorted by path
	Best      *Score `json:"best,omitempty"`  // of the accepted tree; nil: there is no score but "accepted"
	Start     *Score `json:"start,omitempty"` // of the tree that the run began with
	// Baseline is what the accepted tree printed where its tests do not pass, at most MaxBaseline bytes of the end; "" if
	// they do, or if nobody has looked. It is untrusted.
	Baseline string `json:"baseline,omitempty"`
	// History holds the last variants, the oldest first, at most MaxHistory. A generator learns here what became of its
	// last proposal.
	History []Past `json:"history"`
}

// What a State holds at most.
const (
	MaxHistory  = 20       // entries of State.History
	MaxBaseline = 64 << 10 // bytes of State.Baseline
	MaxOutput   = 4 << 10  // bytes of Past.Output
)

// File is one file of the surface.
type File struct {
	Path    string `json:"path"` // relative to the tree, with slashes
	Content string `json:"content"`
	// Bodies names the functions whose bodies alone may change; empty: all of the file.
	Bodies []string `json:"bodies,omitempty"`
}

// Score is what the host measured. Less is better.
type Score struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // such as "% above the lower bound"
}

// Past is one variant that was tried.
type Past struct {
	Iteration int      `json:"iteration"`
	Accepted  bool     `json:"accepted"`
	Score     *Score   `json:"score,omitempty"`  // nil: it did not come so far
	Stage     string   `json:"stage"`            // where it ended, such as "plan", "run", "judge"
	Reasons   []string `json:"reasons"`          // why, one line each, such as "edit-denied: …"
	Note      string   `json:"note,omitempty"`   // as the generator gave it
	Output    string   `json:"output,omitempty"` // the end of what the run printed, at most MaxOutput bytes; untrusted
}

// ErrExhausted means that a generator has nothing more to propose.
var ErrExhausted = fmt.Errorf("evolve: the generator has no further variant")

// ReadFile returns a file of the surface, so that a State is an allowlist.Source: the parsers of patches and of
// search/replace text resolve against exactly what the generator was shown.
func (s *State) ReadFile(path string) ([]byte, error) {
	for _, f := range s.Surface {
		if f.Path == path {
			return []byte(f.Content), nil
		}
	}
	return nil, fmt.Errorf("%s is not on the surface: %w", path, fs.ErrNotExist)
}

// Last returns the newest entry of the history, or nil.
func (s *State) Last() *Past {
	if len(s.History) == 0 {
		return nil
	}
	return &s.History[len(s.History)-1]
}

// Replace is an edit that gives a file of the surface another content.
func (s *State) Replace(path string, content []byte) (allowlist.Edit, error) {
	old, err := s.ReadFile(path)
	if err != nil {
		return allowlist.Edit{}, err
	}
	return allowlist.Edit{Op: allowlist.Modify, Path: path, Content: content, Base: allowlist.Sum(old)}, nil
}
