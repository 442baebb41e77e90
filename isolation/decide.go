// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"math/bits"

	"github.com/evoseal/containment/executor"
)

// PolicyVersion names the rules that [Decide] applies. It changes whenever they do.
const PolicyVersion = "adr0001/v1"

// Decision is what the rules ask for. The zero value requires [TierInvalid], which nothing reaches.
type Decision struct {
	Required  Tier                `json:"required"`  // at most TierContainer; Config.MinTier may raise what is enforced
	Advised   Tier                `json:"advised"`   // at least Required; TierKernel where that would be better
	Needs     executor.Capability `json:"needs"`     // what an attack must have found held
	Fired     []Fired             `json:"fired"`     // in the order of the triggers, then of the facts
	NotFired  []Trigger           `json:"notFired"`  // evaluated and quiet
	Approval  bool                `json:"approval"`  // a person must approve before the run
	Policy    string              `json:"policy"`    // PolicyVersion
	ModelHash string              `json:"modelHash"` // hexadecimal; see TrustModel.Hash
}

// Decide applies the rules. It looks at nothing but its argument, has an answer for every value of every field, and a
// riskier fact never lowers Required, Advised, Needs or Approval.
//
// Any trigger makes [TierContainer] mandatory; without one it is [TierGuarded]. A tier above that is only advised: for
// a generator that is adversarial, or may be, and for the combination of all four risks. A person must approve what is
// unknown, contradicted, adversarial or so combined, and an untrusted generator that nobody watches.
func Decide(m TrustModel) Decision {
	f := factsOf(m)
	d := Decision{Required: TierGuarded, Advised: TierGuarded, Policy: PolicyVersion, ModelHash: m.Hash()}
	because := f.fires()
	fired, notFired := 0, 0
	for _, why := range because[TriggerGeneration:] {
		if fired += bits.OnesCount8(why); why == 0 {
			notFired++
		}
	}
	d.Fired, d.NotFired = make([]Fired, 0, fired), make([]Trigger, 0, notFired) // never nil: [] in JSON
	for t := TriggerGeneration; int(t) < len(because); t++ {
		if because[t] == 0 {
			d.NotFired = append(d.NotFired, t)
		}
		for left := because[t]; left != 0; left &= left - 1 {
			at := Fact(bits.TrailingZeros8(left))
			d.Fired = append(d.Fired, Fired{Trigger: t, Fact: at, Value: f.value(at), Reason: reasonOf(t, at)})
			if len(m.Evidence) > 0 {
				d.Fired[len(d.Fired)-1].Evidence = m.Evidence[at]
			}
		}
	}
	if fired > 0 {
		d.Required, d.Advised = TierContainer, TierContainer
	}
	adversarial := f.generator == Adversarial || f.generator == GeneratorUnknown
	if adversarial || f.combined() {
		d.Advised = TierKernel
	}
	d.Approval = f.unknown() != 0 || f.conflicts != 0 || adversarial || f.combined() || f.unwatched()
	d.Needs = d.Required.Needs()
	return d
}

// facts are the fields of a model that decide, with zero for everything that is not defined.
type facts struct {
	generator                  GeneratorTrust
	host                       Host
	effects, input, unattended Answer
	secrets                    Secrets
	conflicts                  uint8 // a bit for each Fact
}

func factsOf(m TrustModel) facts {
	f := facts{
		generator: defined(m.Generator, generatorNames), host: defined(m.Host, hostNames),
		effects: defined(m.ExternalSideEffects, answerNames), input: defined(m.UntrustedInput, answerNames),
		unattended: defined(m.Unattended, answerNames), secrets: defined(m.Secrets, secretsNames),
	}
	for _, c := range m.Conflicts {
		f.conflicts |= 1 << defined(c, factNames)
	}
	return f
}

// fires returns for each trigger a bit for every fact because of which it fires. An unknown fact fires like its riskiest
// value.
func (f facts) fires() (because [TriggerContradiction + 1]uint8) {
	set := func(t Trigger, at Fact, fires bool) {
		if fires {
			because[t] |= 1 << at
		}
	}
	set(TriggerGeneration, FactGenerator, f.generator != TrustedProvider)
	set(TriggerSharedHost, FactHost, f.host != SingleOperator)
	set(TriggerTargets, FactExternalSideEffects, f.effects != No)
	set(TriggerTargets, FactUntrustedInput, f.input != No)
	set(TriggerSecrets, FactSecrets, f.dear())
	set(TriggerCombined, FactGenerator, f.combined())
	because[TriggerUnknownFact], because[TriggerContradiction] = f.unknown(), f.conflicts
	return because
}

// reasonOf says what it means that a trigger fires because of a fact.
func reasonOf(t Trigger, at Fact) string {
	switch t {
	case TriggerGeneration:
		return "the generator is not a trusted provider"
	case TriggerSharedHost:
		return "the host is not a single operator's"
	case TriggerTargets:
		if at == FactExternalSideEffects {
			return "a variant can act on something outside"
		}
		return "a variant is evaluated on input that others wrote"
	case TriggerSecrets:
		return "secrets within reach must survive a hostile variant"
	case TriggerCombined:
		return "untrusted generation, untrusted input, side effects and high-value secrets at once"
	case TriggerUnknownFact:
		return "nobody knows; answer the question, or let it be looked at"
	case TriggerContradiction:
		return "seen to be riskier than declared; correct the declaration, or what was seen"
	}
	return ""
}

func (f facts) dear() bool { return f.secrets == HighValue || f.secrets == SecretsUnknown }

func (f facts) combined() bool {
	return f.generator != TrustedProvider && f.effects != No && f.input != No && f.dear()
}

// unwatched: generation that is not trusted, and perhaps nobody who would see what comes of it.
func (f facts) unwatched() bool { return f.generator != TrustedProvider && f.unattended != No }

// unknown has a bit for each fact that nobody knows.
func (f facts) unknown() (set uint8) {
	for at, known := range [...]uint8{
		FactGenerator: uint8(f.generator), FactHost: uint8(f.host), FactExternalSideEffects: uint8(f.effects),
		FactUntrustedInput: uint8(f.input), FactSecrets: uint8(f.secrets), FactUnattended: uint8(f.unattended),
	} {
		if known == 0 && Fact(at) != FactUnknown {
			set |= 1 << at
		}
	}
	return set
}

// value returns the name of what is believed about a fact.
func (f facts) value(of Fact) string {
	switch of {
	case FactGenerator:
		return generatorNames[f.generator]
	case FactHost:
		return hostNames[f.host]
	case FactExternalSideEffects:
		return answerNames[f.effects]
	case FactUntrustedInput:
		return answerNames[f.input]
	case FactSecrets:
		return secretsNames[f.secrets]
	case FactUnattended:
		return answerNames[f.unattended]
	}
	return factNames[FactUnknown]
}
