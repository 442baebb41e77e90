// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"

	"github.com/evoseal/containment/executor"
)

// Judge decides whether a variant is kept. It is called once for each run, after the run's process tree is dead, and
// sees only what the host took from the kernel and what the run left behind.
//
// Keep with a nil error is the only way to keep a variant. An error that matches [ErrRejected] says what is wrong with
// it, one that matches [ErrNoResult] that there was nothing to judge; any other error, and a panic, means that the
// judge failed.
type Judge interface {
	Judge(ctx context.Context, e Evaluation) (Ruling, error)
}

// Ruling is what a judge says. Every value but Keep is a rejection.
type Ruling uint8

// The rulings.
const (
	Reject Ruling = iota
	Keep
)

var rulingNames = []string{"reject", "keep"}

// String returns "reject" or "keep".
func (r Ruling) String() string { return named(r, rulingNames) }

// MarshalText writes the name.
func (r Ruling) MarshalText() ([]byte, error) {
	return []byte(rulingNames[defined(r, rulingNames)]), nil
}

// UnmarshalText reads a name; another text matches [ErrName].
func (r *Ruling) UnmarshalText(text []byte) error { return parse(r, "ruling", text, rulingNames) }

// Evaluation is what a judge gets. Everything in Stdout and Artifacts was written by the variant's processes: it is
// evidence against a variant, and never proof for it.
type Evaluation struct {
	Result *executor.Result // nil is never kept
	Args   []string         // what was executed
	// Stdout is all that the run wrote to its standard output. Result keeps the two ends only.
	Stdout []byte
	// StdoutComplete says that nothing is missing in Stdout.
	StdoutComplete bool
	// Artifacts is the host's directory with the files that came back; "" if there are none.
	Artifacts string
	// Baseline is what the accepted tree passes; nil while that is being measured.
	Baseline *Baseline
}

// Baseline is what a report says about the accepted tree. It is compared with later ones by name.
type Baseline struct {
	Passed  []string `json:"passed"`  // sorted, unique
	Skipped []string `json:"skipped"` // sorted, unique
}

// JudgeNeeds is what a judge must find in the specification of every run, or it could never keep anything.
type JudgeNeeds struct {
	Args      []string // words that must be among the arguments, such as "-json"
	Artifacts []string // paths that the run's artifact patterns must take
	Stdout    bool     // Evaluation.Stdout must be there
}

// Demanding is a judge that can say what it needs. The boundary refuses a specification that does not have it.
type Demanding interface {
	Judge
	Needs() JudgeNeeds
}

// Measuring is a judge that compares with what the accepted tree does. Measure returns the baseline of an evaluation in
// which everything passed, and an error like that of Judge if something did not: without a baseline nothing can be
// kept.
type Measuring interface {
	Judge
	Measure(ctx context.Context, e Evaluation) (*Baseline, error)
}
