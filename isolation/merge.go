// SPDX-License-Identifier: Apache-2.0

package isolation

import "slices"

// The chains of risk. A value stands at the place of its rank; what is not defined ranks as unknown.
var (
	generatorRisk = []uint8{GeneratorUnknown: 3, TrustedProvider: 0, Local: 1, SelfTuned: 2, Adversarial: 4}
	hostRisk      = []uint8{HostUnknown: 2, SingleOperator: 0, Shared: 1}
	answerRisk    = []uint8{AnswerUnknown: 2, No: 0, Yes: 1}
	secretsRisk   = []uint8{SecretsUnknown: 3, NoSecrets: 0, LowValue: 1, HighValue: 2}
)

// Merge returns the model with the riskier value of each fact that can be observed. Nothing that was seen lowers a
// risk. A known value that is riskier than a declared one is a conflict; a fact that could not be looked at is unknown
// from then on. The zero [Observed] saw nothing and makes all of its facts unknown. Neither argument is changed.
func (m TrustModel) Merge(o Observed) TrustModel {
	declared := m
	m.Conflicts = slices.Clone(m.Conflicts)
	m.Evidence = make(map[Fact]string, len(declared.Evidence)+len(o.Evidence))
	for f, text := range declared.Evidence {
		m.Evidence[f] = text
	}
	merge := func(f Fact, raised, conflict bool) {
		seen := o.Evidence[f]
		switch {
		case !raised || seen == "":
		case m.Evidence[f] == "":
			m.Evidence[f] = "seen: " + seen
		default:
			m.Evidence[f] += "; seen: " + seen
		}
		if conflict {
			m.Conflicts = append(m.Conflicts, f)
		}
	}
	raised, conflict := false, false
	m.Generator, raised, conflict = riskier(declared.Generator, o.Generator, generatorRisk)
	merge(FactGenerator, raised, conflict)
	m.Host, raised, conflict = riskier(declared.Host, o.Host, hostRisk)
	merge(FactHost, raised, conflict)
	m.ExternalSideEffects, raised, conflict = riskier(declared.ExternalSideEffects, o.ExternalSideEffects, answerRisk)
	merge(FactExternalSideEffects, raised, conflict)
	m.Secrets, raised, conflict = riskier(declared.Secrets, o.Secrets, secretsRisk)
	merge(FactSecrets, raised, conflict)
	slices.Sort(m.Conflicts)
	m.Conflicts = slices.Compact(m.Conflicts)
	return m
}

// riskier returns the value of higher risk, whether it is the seen one, and whether the two contradict each other.
func riskier[T ~uint8](declared, seen T, risk []uint8) (value T, raised, conflict bool) {
	declared, seen = known(declared, risk), known(seen, risk)
	if risk[seen] <= risk[declared] {
		return declared, false, false
	}
	return seen, true, declared != 0 && seen != 0
}

// known returns v, or the zero value, unknown, for one that is not defined.
func known[T ~uint8](v T, risk []uint8) T {
	if int(v) < len(risk) {
		return v
	}
	return 0
}
