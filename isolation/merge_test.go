// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"testing"

	"github.com/evoseal/containment/isolation"
	"github.com/google/go-cmp/cmp"
)

// risk returns the place of a value in its chain; what is not in it is unknown.
func risk[T comparable](chain []T, v T) int {
	var unknown T
	for i, one := range chain {
		if one == v {
			return i
		}
	}
	return risk(chain, unknown)
}

// Over everything that can be declared and observed: the riskier value, and a conflict where two known values differ.
func TestMergeIsTheRiskierValue(t *testing.T) {
	t.Parallel()
	check(t, generators, 5, isolation.FactGenerator,
		func(m *isolation.TrustModel, o *isolation.Observed, d, s isolation.GeneratorTrust) {
			m.Generator, o.Generator = d, s
		},
		func(m isolation.TrustModel) isolation.GeneratorTrust { return m.Generator })
	check(t, hosts, 3, isolation.FactHost,
		func(m *isolation.TrustModel, o *isolation.Observed, d, s isolation.Host) { m.Host, o.Host = d, s },
		func(m isolation.TrustModel) isolation.Host { return m.Host })
	check(t, answers, 3, isolation.FactExternalSideEffects,
		func(m *isolation.TrustModel, o *isolation.Observed, d, s isolation.Answer) {
			m.ExternalSideEffects, o.ExternalSideEffects = d, s
		},
		func(m isolation.TrustModel) isolation.Answer { return m.ExternalSideEffects })
	check(t, secrets, 4, isolation.FactSecrets,
		func(m *isolation.TrustModel, o *isolation.Observed, d, s isolation.Secrets) {
			m.Secrets, o.Secrets = d, s
		},
		func(m isolation.TrustModel) isolation.Secrets { return m.Secrets })
}

func check[T interface {
	~uint8
	comparable
}](t *testing.T, chain []T, count int, fact isolation.Fact,
	set func(m *isolation.TrustModel, o *isolation.Observed, declared, seen T), get func(isolation.TrustModel) T,
) {
	t.Helper()
	if len(chain) != count {
		t.Fatalf("%d values, want %d", len(chain), count)
	}
	values := append([]T{200}, chain...) // and a forged one
	for _, declared := range values {
		for _, seen := range values {
			m, o := quietModel(), quietObserved()
			o.Evidence = map[isolation.Fact]string{fact: "sign"}
			set(&m, &o, declared, seen)
			merged := m.Merge(o)
			want, raised := declared, risk(chain, seen) > risk(chain, declared)
			if raised {
				want = seen
			}
			if risk(chain, get(merged)) != risk(chain, want) || get(merged) == 200 {
				t.Errorf("%v: declared %v, seen %v: %v", fact, declared, seen, get(merged))
			}
			if (merged.Evidence[fact] != "") != raised {
				t.Errorf("%v: declared %v, seen %v: evidence %q", fact, declared, seen, merged.Evidence[fact])
			}
			var conflicts []isolation.Fact
			if raised && declared != 0 && declared != 200 && seen != 0 && seen != 200 {
				conflicts = []isolation.Fact{fact}
			}
			if diff := cmp.Diff(conflicts, merged.Conflicts); diff != "" {
				t.Errorf("%v: declared %v, seen %v: conflicts %s", fact, declared, seen, diff)
			}
			if before, after := isolation.Decide(m), isolation.Decide(merged); weaker(after, before) {
				t.Errorf("%v: declared %v, seen %v: the decision is weaker", fact, declared, seen)
			}
		}
	}
}

// quietObserved is what somebody has seen who has looked everywhere and found nothing.
func quietObserved() isolation.Observed {
	return isolation.Observed{
		Generator: isolation.TrustedProvider, Host: isolation.SingleOperator, ExternalSideEffects: isolation.No,
		Secrets: isolation.NoSecrets,
	}
}

func TestMergeKeepsItsArguments(t *testing.T) {
	t.Parallel()
	m, o := quietModel(), quietObserved()
	m.Conflicts = append(make([]isolation.Fact, 0, 8), isolation.FactUnattended, isolation.FactUnattended)
	m.Evidence = map[isolation.Fact]string{isolation.FactHost: "a contract", isolation.FactSecrets: "none here"}
	o.Host, o.Evidence = isolation.Shared, map[isolation.Fact]string{isolation.FactHost: "two users"}
	merged := m.Merge(o)
	want := []isolation.Fact{isolation.FactHost, isolation.FactUnattended}
	if diff := cmp.Diff(want, merged.Conflicts); diff != "" {
		t.Errorf("conflicts: %s", diff)
	}
	if got := merged.Evidence[isolation.FactHost]; got != "a contract; seen: two users" {
		t.Errorf("evidence %q", got)
	}
	if len(m.Conflicts) != 2 || m.Conflicts[0] != isolation.FactUnattended || m.Evidence[isolation.FactHost] != "a contract" {
		t.Errorf("the model was changed: %+v", m)
	}
	again := merged.Merge(o)
	if diff := cmp.Diff(merged, again); diff != "" {
		t.Errorf("merging twice is not merging once: %s", diff)
	}
}

// Nobody has looked: nothing is believed.
func TestMergeZero(t *testing.T) {
	t.Parallel()
	d := isolation.Decide(quietModel().Merge(isolation.Observed{}))
	if d.Required != isolation.TierContainer || !d.Approval {
		t.Errorf("nobody has looked, and %+v", d)
	}
}
