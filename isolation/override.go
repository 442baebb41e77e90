// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"slices"
	"time"
)

// Override lowers the required tier of one run for at most a day, in the name of a person. It is an object and not a
// switch: it says what it silences, why, for which run and until when, and every use is recorded. [LoadOverride] reads
// it; one that was made in any other way is refused.
//
// It has no effect, and nothing starts, unless all of this holds:
//
//   - it names every trigger that fired, and From is the tier that is required;
//   - To is below From, and at least [TierGuarded];
//   - no trigger that fired is [TriggerUnknownFact] or [TriggerContradiction]: the way out of these is to find out;
//   - the generator is not adversarial, and was not in an earlier decision of the run;
//   - [TriggerGeneration] is not among them if the run is unattended;
//   - it is for this run, and the only one for it: another one later is refused, also after a restart.
//
// It does not take the place of an attack on the executor that comes out inconclusive, nor of an approval, and it never
// goes below Config.MinTier.
type Override struct {
	Triggers []Trigger `json:"triggers"` // what it silences
	From     Tier      `json:"from"`     // what is required
	To       Tier      `json:"to"`       // what is enough
	Reason   string    `json:"reason"`   // 20 characters or more
	Approver string    `json:"approver"` // a person
	Ticket   string    `json:"ticket"`   // where it was discussed; may be empty
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires"` // at most 24 h after Created
	RunID    string    `json:"runID"`

	origin origin
}

// Approval is a person's consent to one run with one model. It never lowers a tier. [LoadApproval] reads it; one that
// was made in any other way is refused. There is one for each run and model.
type Approval struct {
	Approver  string    `json:"approver"`  // a person
	Reason    string    `json:"reason"`    // 20 characters or more
	ModelHash string    `json:"modelHash"` // of the decision that asked for it; the DenyError has it
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires"` // at most 24 h after Created
	RunID     string    `json:"runID"`

	origin origin
}

// Clear ends the latch of triggers. [LoadClear] reads it, [ClearLatch] records it. Triggers that the next decision
// fires again are latched again.
type Clear struct {
	Triggers []Trigger `json:"triggers"`
	Reason   string    `json:"reason"`   // 20 characters or more
	Approver string    `json:"approver"` // a person
	Created  time.Time `json:"created"`  // later than the decisions in which they fired
	Expires  time.Time `json:"expires"`  // at most 24 h after Created
	RunID    string    `json:"runID"`

	origin origin
}

const (
	minReason = 20             // characters: enough for a cause, too many for "ok"
	maxPermit = 24 * time.Hour // nobody remembers for longer why it was right
)

// check returns everything that speaks against the override for a decision, with nil for nothing.
func (o *Override) check(in settleInput, fired []Fired) []error {
	var ps problems
	ps.common(o, o.origin, "override", o.Reason, o.Approver, o.RunID, in)
	ps.times(o.Created, o.Expires, in.now)
	ps.require(o.From == in.required(fired), "from is tier %v, and required is %v", o.From, in.required(fired))
	ps.require(o.To >= TierGuarded && o.To < o.From && defined(o.From, tierNames) != TierInvalid,
		"it leads from tier %v to %v; only to a lower tier, and to %v at the lowest", o.From, o.To, TierGuarded)
	ps.require(in.usedOverride == "" || in.usedOverride == o.origin.digest,
		"run %q has had another override (%.12s…); there is one for each run", in.runID, in.usedOverride)
	for _, f := range fired {
		t := f.Trigger
		ps.require(slices.Contains(o.Triggers, t), "%v fired, and it does not name that", t)
		ps.require(t != TriggerUnknownFact, "%v (%v) cannot be overridden: answer the question", t, f.Fact)
		ps.require(t != TriggerContradiction, "%v (%v) cannot be overridden: correct the declaration", t, f.Fact)
		ps.require(t != TriggerGeneration || f.Value != generatorNames[Adversarial],
			"an adversarial generator cannot be overridden")
		ps.require(t != TriggerGeneration || defined(in.model.Unattended, answerNames) == No,
			"%v cannot be overridden for a run that nobody watches", t)
	}
	return ps
}

// check returns everything that speaks against the approval for a decision, with nil for nothing.
func (a *Approval) check(in settleInput, d Decision) []error {
	var ps problems
	ps.common(a, a.origin, "approval", a.Reason, a.Approver, a.RunID, in)
	ps.times(a.Created, a.Expires, in.now)
	ps.require(a.ModelHash == d.ModelHash, "it is for the model %.12s…, and this one is %s", a.ModelHash, d.ModelHash)
	used := in.usedApprovals[d.ModelHash]
	ps.require(used == "" || used == a.origin.digest,
		"this model has had another approval (%.12s…) in run %q; there is one for each", used, in.runID)
	return ps
}

// check returns everything that speaks against the clear, with nil for nothing.
func (c *Clear) check(in settleInput, latchedAt map[Trigger]time.Time) []error {
	var ps problems
	ps.common(c, c.origin, "clear", c.Reason, c.Approver, c.RunID, in)
	ps.times(c.Created, c.Expires, in.now)
	ps.require(len(c.Triggers) > 0, "it names no trigger")
	for _, t := range c.Triggers {
		at, ok := latchedAt[t]
		ps.require(ok, "%v is not latched in this run", t)
		ps.require(!ok || c.Created.After(at), "%v fired at %s, after it was written", t, at.Format(time.RFC3339))
	}
	return ps
}

// problems collects what does not hold.
type problems []error

func (ps *problems) require(ok bool, format string, args ...any) {
	if !ok {
		*ps = append(*ps, fmt.Errorf(format, args...))
	}
}
