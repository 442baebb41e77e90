// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/google/go-cmp/cmp"
)

// quietModel is one in which nothing fires.
func quietModel() isolation.TrustModel {
	return isolation.TrustModel{
		Generator: isolation.TrustedProvider, Host: isolation.SingleOperator, ExternalSideEffects: isolation.No,
		UntrustedInput: isolation.No, Secrets: isolation.NoSecrets, Unattended: isolation.No,
	}
}

// The chains of risk, written down apart from the code.
var (
	generators = []isolation.GeneratorTrust{isolation.TrustedProvider, isolation.Local, isolation.SelfTuned,
		isolation.GeneratorUnknown, isolation.Adversarial}
	hosts   = []isolation.Host{isolation.SingleOperator, isolation.Shared, isolation.HostUnknown}
	answers = []isolation.Answer{isolation.No, isolation.Yes, isolation.AnswerUnknown}
	secrets = []isolation.Secrets{isolation.NoSecrets, isolation.LowValue, isolation.HighValue, isolation.SecretsUnknown}
)

// place is a point in the space of models: the place of each fact in its chain.
type place [6]int

var space = place{len(generators), len(hosts), len(answers), len(answers), len(secrets), len(answers)}

func (p place) model() isolation.TrustModel {
	return isolation.TrustModel{
		Generator: generators[p[0]], Host: hosts[p[1]], ExternalSideEffects: answers[p[2]], UntrustedInput: answers[p[3]],
		Secrets: secrets[p[4]], Unattended: answers[p[5]],
	}
}

// all calls f for each of the 1,620 models.
func all(f func(p place)) (n int) {
	var p place
	for p[0] = range space[0] {
		for p[1] = range space[1] {
			for p[2] = range space[2] {
				for p[3] = range space[3] {
					for p[4] = range space[4] {
						for p[5] = range space[5] {
							f(p)
							n++
						}
					}
				}
			}
		}
	}
	return n
}

// expected is the golden table, in the words of the document.
func expected(m isolation.TrustModel) (required, advised isolation.Tier, approval bool) {
	unknown := m.Generator == 0 || m.Host == 0 || m.ExternalSideEffects == 0 || m.UntrustedInput == 0 || m.Secrets == 0 ||
		m.Unattended == 0
	untrusted := m.Generator != isolation.TrustedProvider
	dear := m.Secrets == isolation.HighValue || m.Secrets == isolation.SecretsUnknown
	targets := m.ExternalSideEffects != isolation.No || m.UntrustedInput != isolation.No
	combined := untrusted && dear && m.ExternalSideEffects != isolation.No && m.UntrustedInput != isolation.No
	adversarial := m.Generator == isolation.Adversarial || m.Generator == isolation.GeneratorUnknown
	required = isolation.TierGuarded
	if unknown || untrusted || m.Host != isolation.SingleOperator || targets || dear || len(m.Conflicts) > 0 {
		required = isolation.TierContainer
	}
	advised = required
	if combined || adversarial {
		advised = isolation.TierKernel
	}
	return required, advised, unknown || combined || adversarial || len(m.Conflicts) > 0 ||
		untrusted && m.Unattended == isolation.Yes
}

func TestDecideTable(t *testing.T) {
	t.Parallel()
	n := all(func(p place) {
		for _, conflicts := range [][]isolation.Fact{nil, {isolation.FactHost}, {0}, {99, 99}} {
			m := p.model()
			m.Conflicts = conflicts
			d := isolation.Decide(m)
			required, advised, approval := expected(m)
			if d.Required != required || d.Advised != advised || d.Approval != approval || d.Needs != required.Needs() {
				t.Fatalf("%+v: got %+v, want %v, %v, %v", m, d, required, advised, approval)
			}
			var triggers []isolation.Trigger
			for _, f := range d.Fired {
				triggers = append(triggers, f.Trigger)
				if f.Reason == "" || f.Value == "" || f.Latched {
					t.Fatalf("%+v: fired %+v", m, f)
				}
			}
			if !slices.IsSorted(triggers) {
				t.Fatalf("%+v: not in order: %v", m, triggers)
			}
			evaluated := slices.Compact(slices.Sorted(slices.Values(append(triggers, d.NotFired...))))
			if len(evaluated) != 7 || len(slices.Compact(triggers))+len(d.NotFired) != 7 {
				t.Fatalf("%+v: fired %v, quiet %v", m, triggers, d.NotFired)
			}
			if (len(d.Fired) > 0) != (required == isolation.TierContainer) {
				t.Fatalf("%+v: %v fired, and tier %v", m, triggers, d.Required)
			}
		}
	})
	if n != 1620 {
		t.Errorf("%d models, want 1620", n)
	}
}

// weaker reports whether a decision asks for less than another in any respect.
func weaker(d, than isolation.Decision) bool {
	return d.Required < than.Required || d.Advised < than.Advised || !d.Needs.Has(than.Needs) || !d.Approval && than.Approval
}

func TestDecideMonotone(t *testing.T) {
	t.Parallel()
	all(func(p place) {
		before := isolation.Decide(p.model())
		for fact := range p {
			riskier := p
			if riskier[fact]++; riskier[fact] < space[fact] {
				if d := isolation.Decide(riskier.model()); weaker(d, before) {
					t.Fatalf("from %+v to %+v: %+v is weaker than %+v", p.model(), riskier.model(), d, before)
				}
			}
		}
		m := p.model()
		m.Conflicts = []isolation.Fact{isolation.FactSecrets}
		if d := isolation.Decide(m); weaker(d, before) || d.Required != isolation.TierContainer || !d.Approval {
			t.Fatalf("%+v with a conflict: %+v", m, d)
		}
	})
}

// A value that is not defined counts as unknown, to the last bit of the decision.
func TestDecideForged(t *testing.T) {
	t.Parallel()
	all(func(p place) {
		for _, v := range []uint8{5, 7, 64, 128, 255} {
			forged, honest := p.model(), p.model()
			switch (p[0] + p[1] + p[2] + p[3] + p[4] + p[5] + int(v)) % 6 {
			case 0:
				forged.Generator, honest.Generator = isolation.GeneratorTrust(v), isolation.GeneratorUnknown
			case 1:
				forged.Host, honest.Host = isolation.Host(v), isolation.HostUnknown
			case 2:
				forged.ExternalSideEffects, honest.ExternalSideEffects = isolation.Answer(v), isolation.AnswerUnknown
			case 3:
				forged.UntrustedInput, honest.UntrustedInput = isolation.Answer(v), isolation.AnswerUnknown
			case 4:
				forged.Secrets, honest.Secrets = isolation.Secrets(v), isolation.SecretsUnknown
			case 5:
				forged.Unattended, honest.Unattended = isolation.Answer(v), isolation.AnswerUnknown
			}
			got, want := isolation.Decide(forged), isolation.Decide(honest)
			if !reflect.DeepEqual(want, got) { // cmp takes seconds for as many
				t.Fatalf("%+v: (-unknown +forged)\n%s", forged, cmp.Diff(want, got))
			}
			if got.Required != isolation.TierContainer || !got.Approval {
				t.Fatalf("%+v: %+v", forged, got)
			}
		}
	})
}

func TestDecideZero(t *testing.T) {
	t.Parallel()
	d := isolation.Decide(isolation.TrustModel{})
	if d.Required != isolation.TierContainer || d.Advised != isolation.TierKernel || !d.Approval || len(d.NotFired) != 1 {
		t.Errorf("the zero model: %+v", d)
	}
	var none isolation.Decision
	if none.Required != isolation.TierInvalid || none.Required.Needs() != executor.AllCapabilities {
		t.Errorf("the zero decision: %+v needs %v", none, none.Required.Needs())
	}
}

// Decide keeps and changes nothing of its argument.
func TestDecidePure(t *testing.T) {
	t.Parallel()
	m := quietModel()
	m.Conflicts = []isolation.Fact{isolation.FactSecrets, isolation.FactHost}
	m.Evidence = map[isolation.Fact]string{isolation.FactHost: "one account"}
	first := isolation.Decide(m)
	if diff := cmp.Diff([]isolation.Fact{isolation.FactSecrets, isolation.FactHost}, m.Conflicts); diff != "" {
		t.Errorf("the conflicts were changed: %s", diff)
	}
	first.Fired[0].Reason, first.NotFired[0] = "changed", 0
	again := isolation.Decide(m)
	if again.Fired[0].Reason == "changed" || again.NotFired[0] == 0 {
		t.Error("two decisions share memory")
	}
	if again.Fired[0].Evidence != "one account" || again.Fired[0].Fact != isolation.FactHost {
		t.Errorf("fired %+v", again.Fired[0])
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	base := quietModel()
	base.DeclaredBy, base.DeclaredAt = "A. Person", time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	seen := map[string]isolation.TrustModel{}
	all(func(p place) {
		m := p.model()
		m.DeclaredBy, m.DeclaredAt = base.DeclaredBy, base.DeclaredAt
		if other, twice := seen[m.Hash()]; twice {
			t.Fatalf("%+v and %+v have the same hash", m, other)
		}
		seen[m.Hash()] = m
	})
	for what, change := range map[string]func(m *isolation.TrustModel){
		"who":      func(m *isolation.TrustModel) { m.DeclaredBy = "B. Person" },
		"control":  func(m *isolation.TrustModel) { m.DeclaredBy = "A. \x00\"\\Person\u2028é" },
		"when":     func(m *isolation.TrustModel) { m.DeclaredAt = m.DeclaredAt.Add(1) },
		"conflict": func(m *isolation.TrustModel) { m.Conflicts = []isolation.Fact{isolation.FactHost} },
		"unnamed":  func(m *isolation.TrustModel) { m.Conflicts = []isolation.Fact{0} },
	} {
		m := base
		change(&m)
		if m.Hash() == base.Hash() {
			t.Errorf("%s makes no difference", what)
		}
	}
	same := base
	same.Evidence = map[isolation.Fact]string{isolation.FactHost: "x"}
	same.DeclaredAt = base.DeclaredAt.In(time.FixedZone("x", 3600))
	if same.Hash() != base.Hash() {
		t.Error("evidence or a time zone makes a difference")
	}
	const canonical = `{"policy":"adr0001/v1","generator":"trusted-provider","host":"single-operator",` +
		`"externalSideEffects":"no","untrustedInput":"no","secrets":"none","unattended":"no",` +
		`"conflicts":["host","secrets"],"declaredBy":"A. <Person>","declaredAt":"2026-01-02T15:04:05.000000001Z"}`
	base.Conflicts = []isolation.Fact{isolation.FactSecrets, isolation.FactHost, isolation.FactSecrets}
	base.DeclaredBy, base.DeclaredAt = "A. <Person>", base.DeclaredAt.Add(1)
	if got, want := base.Hash(), fmt.Sprintf("%x", sha256.Sum256([]byte(canonical))); got != want {
		t.Errorf("the hash is %s, and that of the documented text %s", got, want)
	}
}

// The text travels, and nothing in it is a number.
func TestDecisionJSON(t *testing.T) {
	t.Parallel()
	m := quietModel()
	m.Generator, m.Evidence = isolation.SelfTuned, map[isolation.Fact]string{isolation.FactGenerator: "version 7 of our own"}
	d := isolation.Decide(m)
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"required":"container"`, `"trigger":"untrusted-generation"`, `"value":"self-tuned"`,
		`"evidence":"version 7 of our own"`, `"notFired":["shared-host"`, `"policy":"adr0001/v1"`, `"needs":["CleanEnv"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s is not in %s", part, text)
		}
	}
	var back isolation.Decision
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, back); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
	if text, _ = json.Marshal(isolation.Decide(quietModel())); !strings.Contains(string(text), `"fired":[]`) {
		t.Errorf("a list without entries is none: %s", text)
	}
}

func FuzzDecide(f *testing.F) {
	f.Add(uint8(0), uint8(0), uint8(0), uint8(0), uint8(0), uint8(0), uint8(0), "")
	f.Add(uint8(4), uint8(2), uint8(1), uint8(2), uint8(3), uint8(9), uint8(255), "x\"\xff")
	f.Fuzz(func(t *testing.T, g, h, e, u, s, a, c uint8, by string) {
		m := isolation.TrustModel{Generator: isolation.GeneratorTrust(g), Host: isolation.Host(h),
			ExternalSideEffects: isolation.Answer(e), UntrustedInput: isolation.Answer(u), Secrets: isolation.Secrets(s),
			Unattended: isolation.Answer(a), DeclaredBy: by}
		if c > 0 {
			m.Conflicts = []isolation.Fact{isolation.Fact(c)}
		}
		d := isolation.Decide(m)
		if d.Required != isolation.TierGuarded && d.Required != isolation.TierContainer || d.Advised < d.Required {
			t.Errorf("%+v: %+v", m, d)
		}
		if len(d.ModelHash) != 64 || d.ModelHash != m.Hash() {
			t.Errorf("hash %q", d.ModelHash)
		}
	})
}
