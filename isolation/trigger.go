// SPDX-License-Identifier: Apache-2.0

package isolation

// Trigger is a circumstance that makes [TierContainer] mandatory. The first four are those of the decision record that
// this policy implements, in its order and words; the others close what it left open.
type Trigger uint8

// The triggers, in the order in which they are evaluated. The zero value names none.
const (
	TriggerUnknown Trigger = iota
	// TriggerGeneration: untrusted or adversarial generation. The generator is not a trusted provider.
	TriggerGeneration
	// TriggerSharedHost: shared or multi-tenant host.
	TriggerSharedHost
	// TriggerTargets: untrusted execution targets. External side effects, or untrusted input during evaluation.
	TriggerTargets
	// TriggerSecrets: secrets that must survive a hostile variant.
	TriggerSecrets
	// TriggerCombined: untrusted generation, untrusted input, side effects and high-value secrets all at once. It also
	// advises [TierKernel].
	TriggerCombined
	// TriggerUnknownFact: a fact is unknown.
	TriggerUnknownFact
	// TriggerContradiction: a fact was seen to be riskier than declared.
	TriggerContradiction
)

var triggerNames = []string{
	"unknown", "untrusted-generation", "shared-host", "untrusted-targets", "secrets", "combined", "unknown-fact",
	"contradiction",
}

// Fired is a trigger that fired, and why.
type Fired struct {
	Trigger Trigger `json:"trigger"`
	Fact    Fact    `json:"fact"`  // what made it fire
	Value   string  `json:"value"` // and its value, such as "self-tuned"
	Reason  string  `json:"reason"`
	// Evidence is what the model says about the fact, for people.
	Evidence string `json:"evidence,omitempty"`
	// Latched says that it fired in an earlier decision of the same run and no [Clear] was recorded since.
	Latched bool `json:"latched,omitempty"`
}

// String returns the name, such as "untrusted-generation".
func (t Trigger) String() string { return named(t, triggerNames) }

// MarshalText writes the name; a value that is not defined is written as "unknown".
func (t Trigger) MarshalText() ([]byte, error) {
	return []byte(triggerNames[defined(t, triggerNames)]), nil
}

// UnmarshalText reads a name; another text matches [ErrName].
func (t *Trigger) UnmarshalText(text []byte) error { return parse(t, "trigger", text, triggerNames) }
