// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"iter"
	"slices"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/rollback"
)

// Verdict is what came of one step. The zero value is a rejection.
type Verdict struct {
	// Accepted: the variant was kept, and the tree holds it. Nothing else is an acceptance, whatever Result says.
	Accepted  bool `json:"accepted"`
	Iteration int  `json:"iteration"` // of the governor; 0: none began
	// Stage is where it was decided: StageSettle if the variant was kept, else the stage at which it failed.
	Stage Stage `json:"stage"`
	// Reasons are in the order in which they arose: the first one decided, the last one says what the tree is now.
	Reasons []Reason `json:"reasons"`

	Plan       string           `json:"plan,omitempty"`     // digest of the edits and the policy that allowed them
	Tree       string           `json:"tree,omitempty"`     // digest of the tree as it is now; "" if it is not known
	Checkpoint rollback.ID      `json:"checkpoint"`         // that holds this tree
	Evidence   string           `json:"evidence,omitempty"` // head of the decision log: number and hash
	Result     *executor.Result `json:"-"`                  // nil: nothing ran
	Timing     Timing           `json:"timing"`
}

// Because reports whether the reason is among those of the verdict.
func (v *Verdict) Because(w Why) bool {
	return v != nil && slices.ContainsFunc(v.Reasons, func(r Reason) bool { return r.Why == w })
}

// Timing says how long each stage took, by its number. Use [Timing.All] to read it.
type Timing [StageEnd + 1]time.Duration

// All yields the stages that took time, in order.
func (t Timing) All() iter.Seq2[Stage, time.Duration] {
	return func(yield func(Stage, time.Duration) bool) {
		for s, d := range t {
			if d > 0 && !yield(Stage(s), d) {
				return
			}
		}
	}
}

// Total is the sum of all stages.
func (t Timing) Total() (sum time.Duration) {
	for _, d := range t {
		sum += d
	}
	return sum
}
