// SPDX-License-Identifier: Apache-2.0

package isolation

import "time"

// TrustModel is what a host believes about a run. It is data that a person fills in and signs with a name; [Observe]
// looks whether it is true. The zero value knows nothing, and so requires the most.
type TrustModel struct {
	Generator           GeneratorTrust `json:"generator"`           // who writes the variants
	Host                Host           `json:"host"`                // who else works on this machine
	ExternalSideEffects Answer         `json:"externalSideEffects"` // can a variant act on anything outside?
	UntrustedInput      Answer         `json:"untrustedInput"`      // is it evaluated on input that others wrote?
	Secrets             Secrets        `json:"secrets"`             // what is within reach of the host program
	Unattended          Answer         `json:"unattended"`          // does it run while nobody watches?

	DeclaredBy string    `json:"declaredBy"` // a person
	DeclaredAt time.Time `json:"declaredAt"` // when that person looked, not when the program started

	// Evidence says why each fact is believed. It is for people: nothing is decided by it, and it is no part of
	// [Decision.ModelHash], so that a new wording does not void an approval.
	Evidence map[Fact]string `json:"evidence,omitempty"`
	// Conflicts are the facts that were seen to be riskier than declared. Merge fills it.
	Conflicts []Fact `json:"conflicts,omitempty"`
}

// GeneratorTrust says how far the source of variants is trusted. By risk: TrustedProvider, Local, SelfTuned,
// GeneratorUnknown, Adversarial.
type GeneratorTrust uint8

// Where variants come from.
const (
	GeneratorUnknown GeneratorTrust = iota
	TrustedProvider                 // a provider whom the operator has reason to trust, reached as itself
	Local                           // a model that runs here or next door
	SelfTuned                       // a model that the program itself has trained or chosen
	Adversarial                     // somebody who tries to get out
)

// Host says who shares the machine. By risk: SingleOperator, Shared, HostUnknown.
type Host uint8

// Whose machine it is.
const (
	HostUnknown Host = iota
	SingleOperator
	Shared
)

// Answer is the answer to a question of fact. By risk: No, Yes, AnswerUnknown.
type Answer uint8

// The answers.
const (
	AnswerUnknown Answer = iota
	No
	Yes
)

// Secrets says what a hostile variant could take from the host program's surroundings. By risk: NoSecrets, LowValue,
// HighValue, SecretsUnknown.
type Secrets uint8

// What there is to lose.
const (
	SecretsUnknown Secrets = iota
	NoSecrets
	LowValue  // can be replaced within the hour, and opens nothing else
	HighValue // must survive a hostile variant
)

// Fact names a field of [TrustModel].
type Fact uint8

// The facts, in the order in which they are reported. The zero value names none.
const (
	FactUnknown Fact = iota
	FactGenerator
	FactHost
	FactExternalSideEffects
	FactUntrustedInput
	FactSecrets
	FactUnattended
)

var (
	generatorNames = []string{"unknown", "trusted-provider", "local", "self-tuned", "adversarial"}
	hostNames      = []string{"unknown", "single-operator", "shared"}
	answerNames    = []string{"unknown", "no", "yes"}
	secretsNames   = []string{"unknown", "none", "low-value", "high-value"}
	factNames      = []string{"unknown", "generator", "host", "external-side-effects", "untrusted-input", "secrets",
		"unattended"}
)

// String returns the name, such as "self-tuned".
func (g GeneratorTrust) String() string { return named(g, generatorNames) }

// MarshalText writes the name; a value that is not defined is written as "unknown".
func (g GeneratorTrust) MarshalText() ([]byte, error) {
	return []byte(generatorNames[defined(g, generatorNames)]), nil
}

// UnmarshalText reads a name; another text matches [ErrName].
func (g *GeneratorTrust) UnmarshalText(text []byte) error {
	return parse(g, "trust in a generator", text, generatorNames)
}

// String returns the name, such as "single-operator".
func (h Host) String() string { return named(h, hostNames) }

// MarshalText writes the name; a value that is not defined is written as "unknown".
func (h Host) MarshalText() ([]byte, error) { return []byte(hostNames[defined(h, hostNames)]), nil }

// UnmarshalText reads a name; another text matches [ErrName].
func (h *Host) UnmarshalText(text []byte) error { return parse(h, "kind of host", text, hostNames) }

// String returns "no", "yes" or "unknown".
func (a Answer) String() string { return named(a, answerNames) }

// MarshalText writes the name; a value that is not defined is written as "unknown".
func (a Answer) MarshalText() ([]byte, error) {
	return []byte(answerNames[defined(a, answerNames)]), nil
}

// UnmarshalText reads a name; another text matches [ErrName].
func (a *Answer) UnmarshalText(text []byte) error { return parse(a, "answer", text, answerNames) }

// String returns the name, such as "high-value".
func (s Secrets) String() string { return named(s, secretsNames) }

// MarshalText writes the name; a value that is not defined is written as "unknown".
func (s Secrets) MarshalText() ([]byte, error) {
	return []byte(secretsNames[defined(s, secretsNames)]), nil
}

// UnmarshalText reads a name; another text matches [ErrName].
func (s *Secrets) UnmarshalText(text []byte) error {
	return parse(s, "value of secrets", text, secretsNames)
}

// String returns the name, such as "untrusted-input".
func (f Fact) String() string { return named(f, factNames) }

// MarshalText writes the name; a value that is not defined is written as "unknown".
func (f Fact) MarshalText() ([]byte, error) { return []byte(factNames[defined(f, factNames)]), nil }

// UnmarshalText reads a name; another text matches [ErrName].
func (f *Fact) UnmarshalText(text []byte) error { return parse(f, "fact", text, factNames) }
