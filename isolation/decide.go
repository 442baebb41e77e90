// SPDX-License-Identifier: Apache-2.0

package isolation

import "github.com/evoseal/containment/executor"

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
	d := Decision{
		Required: TierGuarded, Advised: TierGuarded, Policy: PolicyVersion, ModelHash: m.Hash(),
		NotFired: make([]Trigger, 0, len(triggerNames)),
	}
	var space [1 + 1 + 2 + 1 + 1 + 6 + 7]Fired // all that can fire, on the stack: most models fire little
	fired := space[:0]
	for t := TriggerGeneration; int(t) < len(triggerNames); t++ {
		before := len(fired)
		for at := FactUnknown; int(at) < len(factNames); at++ {
			if concerns[t]&(1<<at) == 0 {
				continue
			}
			if reason := f.fires(t, at); reason != "" {
				fired = append(fired, Fired{
					Trigger: t, Fact: at, Value: f.value(at), Reason: reason, Evidence: m.Evidence[at],
				})
			}
		}
		if len(fired) == before {
			d.NotFired = append(d.NotFired, t)
		}
	}
	d.Fired = append([]Fired{}, fired...) // never nil: [] in JSON
	if len(d.Fired) > 0 {
		d.Required, d.Advised = TierContainer, TierContainer
	}
	adversarial := f.generator == Adversarial || f.generator == GeneratorUnknown
	if adversarial || f.combined() {
		d.Advised = TierKernel
	}
	d.Approval = f.unknown() || f.conflicts != 0 || adversarial || f.combined() || f.unwatched()
	d.Needs = d.Required.Needs()
	return d
}

// concerns has a bit for each fact that can make a trigger fire.
var concerns = [...]uint8{
	TriggerGeneration:    1 << FactGenerator,
	TriggerSharedHost:    1 << FactHost,
	TriggerTargets:       1<<FactExternalSideEffects | 1<<FactUntrustedInput,
	TriggerSecrets:       1 << FactSecrets,
	TriggerCombined:      1 << FactGenerator,
	TriggerUnknownFact:   1<<FactUnattended<<1 - 2,
	TriggerContradiction: 1<<FactUnattended<<1 - 1,
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

// fires returns why a trigger fires because of a fact that concerns it; "" if it does not. An unknown fact fires like
// its riskiest value.
func (f facts) fires(t Trigger, at Fact) string {
	switch {
	case t == TriggerGeneration && f.generator != TrustedProvider:
		return "the generator is not a trusted provider"
	case t == TriggerSharedHost && f.host != SingleOperator:
		return "the host is not a single operator's"
	case t == TriggerTargets && at == FactExternalSideEffects && f.effects != No:
		return "a variant can act on something outside"
	case t == TriggerTargets && at == FactUntrustedInput && f.input != No:
		return "a variant is evaluated on input that others wrote"
	case t == TriggerSecrets && f.dear():
		return "secrets within reach must survive a hostile variant"
	case t == TriggerCombined && f.combined():
		return "untrusted generation, untrusted input, side effects and high-value secrets at once"
	case t == TriggerUnknownFact && f.value(at) == factNames[FactUnknown]:
		return "nobody knows; answer the question, or let it be looked at"
	case t == TriggerContradiction && f.conflicts&(1<<at) != 0:
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

func (f facts) unknown() bool {
	return f.generator == 0 || f.host == 0 || f.effects == 0 || f.input == 0 || f.secrets == 0 || f.unattended == 0
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
