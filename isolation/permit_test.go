// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

var (
	now   = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	given = origin{path: "/etc/containment/permit.json", digest: "to be had from loaded"}
)

// loaded makes a permit one that a file holds, with whatever a test has written into it.
func loaded[T any](permit *T, from *origin) *T {
	if from.digest != "" {
		from.digest = digestOf(permit)
	}
	return permit
}

const reason = "the container engine is being repaired"

// attended is a model in which exactly the first trigger fires, and which needs no approval.
func attended() TrustModel {
	return TrustModel{Generator: Local, Host: SingleOperator, ExternalSideEffects: No, UntrustedInput: No,
		Secrets: LowValue, Unattended: No}
}

func goodOverride() *Override {
	o := &Override{Triggers: []Trigger{TriggerGeneration}, From: TierContainer, To: TierConfined, Reason: reason,
		Approver: "A. Person", Created: now.Add(-time.Hour), Expires: now.Add(time.Hour), RunID: "run-7", origin: given}
	return loaded(o, &o.origin)
}

func input(m TrustModel, o *Override) settleInput {
	return settleInput{model: m, decision: Decide(m), override: o, runID: "run-7", tree: "/srv/tree", now: now}
}

func TestOverride(t *testing.T) {
	t.Parallel()
	if s := settle(input(attended(), goodOverride())); len(s.Missing) > 0 || s.Required != TierConfined ||
		s.Needs != TierConfined.Needs() || s.Override != digestOf(goodOverride()) || !s.Until.Equal(now.Add(time.Hour)) {
		t.Fatalf("a good one: %+v", s)
	}
	for what, spoil := range map[string]func(o *Override, in *settleInput){
		"made by the program":  func(o *Override, _ *settleInput) { o.origin = origin{} },
		"changed":              func(o *Override, _ *settleInput) { o.Ticket = "another" },
		"inside the tree":      func(o *Override, _ *settleInput) { o.origin.path = "/srv/tree/o.json" },
		"no trigger":           func(o *Override, _ *settleInput) { o.Triggers = nil },
		"another trigger":      func(o *Override, _ *settleInput) { o.Triggers = []Trigger{TriggerSecrets} },
		"from another tier":    func(o *Override, _ *settleInput) { o.From = TierKernel },
		"from no tier":         func(o *Override, _ *settleInput) { o.From = 0 },
		"not lower":            func(o *Override, _ *settleInput) { o.To = TierContainer },
		"higher":               func(o *Override, _ *settleInput) { o.To = TierKernel },
		"below guarded":        func(o *Override, _ *settleInput) { o.To = TierRecovery },
		"to no tier":           func(o *Override, _ *settleInput) { o.To = TierInvalid },
		"to a forged tier":     func(o *Override, _ *settleInput) { o.To = 200 },
		"no reason":            func(o *Override, _ *settleInput) { o.Reason = "" },
		"short reason":         func(o *Override, _ *settleInput) { o.Reason = "because it is so!" },
		"reason of spaces":     func(o *Override, _ *settleInput) { o.Reason = strings.Repeat(" ", 40) },
		"reason of nothing":    func(o *Override, _ *settleInput) { o.Reason = strings.Repeat("\u200b\u0301", 40) },
		"no approver":          func(o *Override, _ *settleInput) { o.Approver = " " },
		"no run":               func(o *Override, _ *settleInput) { o.RunID = "" },
		"another run":          func(o *Override, _ *settleInput) { o.RunID = "run-8" },
		"no dates":             func(o *Override, _ *settleInput) { o.Created, o.Expires = time.Time{}, time.Time{} },
		"no creation":          func(o *Override, _ *settleInput) { o.Created = time.Time{} },
		"no end":               func(o *Override, _ *settleInput) { o.Expires = time.Time{} },
		"not yet":              func(o *Override, _ *settleInput) { o.Created = now.Add(1) },
		"too long":             func(o *Override, _ *settleInput) { o.Expires = o.Created.Add(24*time.Hour + 1) },
		"expired":              func(o *Override, _ *settleInput) { o.Expires = now },
		"end before beginning": func(o *Override, _ *settleInput) { o.Expires = o.Created.Add(-1) },
		"the second one":       func(_ *Override, in *settleInput) { in.usedOverride = "other" },
		"unattended":           func(_ *Override, in *settleInput) { in.model.Unattended = Yes; in.decision = Decide(in.model) },
		"attended forged":      func(_ *Override, in *settleInput) { in.model.Unattended = 99; in.decision = Decide(in.model) },
		"adversarial":          func(_ *Override, in *settleInput) { in.model.Generator = Adversarial; in.decision = Decide(in.model) },
		"adversarial before": func(_ *Override, in *settleInput) {
			in.latched = Decide(TrustModel{Generator: Adversarial, Host: SingleOperator, ExternalSideEffects: No,
				UntrustedInput: No, Secrets: NoSecrets, Unattended: No}).Fired
		},
		"unknown fact": func(o *Override, in *settleInput) {
			in.model.Host = HostUnknown
			in.decision = Decide(in.model)
			o.Triggers = []Trigger{TriggerGeneration, TriggerSharedHost, TriggerUnknownFact}
		},
		"contradiction": func(o *Override, in *settleInput) {
			in.model.Conflicts = []Fact{FactGenerator}
			in.decision = Decide(in.model)
			o.Triggers = []Trigger{TriggerGeneration, TriggerContradiction}
		},
		"nothing fired": func(_ *Override, in *settleInput) {
			in.model.Generator = TrustedProvider
			in.decision = Decide(in.model)
		},
	} {
		o := goodOverride()
		in := input(attended(), o)
		spoil(o, &in)
		if what != "changed" {
			loaded(o, &o.origin)
		}
		s := settle(in)
		var permit *PermitError
		if !errors.As(errors.Join(s.Missing...), &permit) || permit.Kind != "override" || s.Override != "" {
			t.Errorf("%s: %+v", what, s)
		}
		if s.Required < in.decision.Required {
			t.Errorf("%s: tier %v is enough", what, s.Required)
		}
	}
}

// MinTier wins over an override, and what is no tier is refused.
func TestMinTier(t *testing.T) {
	t.Parallel()
	for min, want := range map[Tier]Tier{TierInvalid: TierConfined, TierGuarded: TierConfined, TierContainer: TierContainer,
		TierKernel: TierKernel} {
		in := input(attended(), goodOverride())
		in.min = min
		if s := settle(in); len(s.Missing) > 0 || s.Required != want || s.Needs != want.Needs() {
			t.Errorf("MinTier %v: %v", min, s.Required)
		}
	}
	in := input(attended(), nil)
	in.min = 77
	if s := settle(in); !errors.Is(errors.Join(s.Missing...), ErrConfig) || s.Required != TierContainer {
		t.Errorf("a forged MinTier: %+v", s)
	}
}

func TestApproval(t *testing.T) {
	t.Parallel()
	m := attended()
	m.Unattended = Yes
	good := func() *Approval {
		a := &Approval{Approver: "A. Person", Reason: reason, ModelHash: Decide(m).ModelHash, Created: now.Add(-time.Hour),
			Expires: now.Add(2 * time.Hour), RunID: "run-7", origin: given}
		return loaded(a, &a.origin)
	}
	in := input(m, nil)
	if s := settle(in); len(s.Missing) != 1 || !errors.Is(s.Missing[0], ErrPermit) ||
		!strings.Contains(s.Missing[0].Error(), Decide(m).ModelHash) {
		t.Errorf("without one: %v", s.Missing)
	}
	in.approval = good()
	if s := settle(in); len(s.Missing) > 0 || s.Required != TierContainer || s.Approval != digestOf(good()) ||
		!s.Until.Equal(now.Add(2*time.Hour)) {
		t.Errorf("a good one: %+v", s)
	}
	for what, spoil := range map[string]func(a *Approval, in *settleInput){
		"made by the program": func(a *Approval, _ *settleInput) { a.origin = origin{} },
		"changed":             func(a *Approval, _ *settleInput) { a.Approver = "B. Person" },
		"the tree itself":     func(a *Approval, _ *settleInput) { a.origin.path = "/srv/tree" },
		"another model":       func(_ *Approval, in *settleInput) { in.model.DeclaredBy = "x"; in.decision = Decide(in.model) },
		"no model":            func(a *Approval, _ *settleInput) { a.ModelHash = "" },
		"no reason":           func(a *Approval, _ *settleInput) { a.Reason = "go" },
		"no approver":         func(a *Approval, _ *settleInput) { a.Approver = "" },
		"another run":         func(a *Approval, _ *settleInput) { a.RunID = "run-70" },
		"expired":             func(a *Approval, _ *settleInput) { a.Expires = now.Add(-1) },
		"too long":            func(a *Approval, _ *settleInput) { a.Expires = a.Created.Add(25 * time.Hour) },
		"a second one": func(_ *Approval, in *settleInput) {
			in.usedApprovals = map[string]string{in.decision.ModelHash: "other"}
		},
	} {
		in := input(m, nil)
		in.approval = good()
		spoil(in.approval, &in)
		if what != "changed" {
			loaded(in.approval, &in.approval.origin)
		}
		if s := settle(in); !errors.Is(errors.Join(s.Missing...), ErrPermit) || s.Approval != "" {
			t.Errorf("%s: %+v", what, s)
		}
	}
	// The same one again, and one for another model, are in order.
	in = input(m, nil)
	in.approval, in.usedApprovals = good(), map[string]string{in.decision.ModelHash: digestOf(good()), "x": "other"}
	if s := settle(in); len(s.Missing) > 0 {
		t.Errorf("used again: %v", s.Missing)
	}
}

// What is latched counts like what fires now.
func TestLatched(t *testing.T) {
	t.Parallel()
	mild := attended()
	mild.Generator, mild.Secrets = TrustedProvider, NoSecrets
	for what, c := range map[string]struct {
		before   func(m *TrustModel)
		approval bool
		advised  Tier
	}{
		"local":         {func(m *TrustModel) { m.Generator = Local }, false, TierContainer},
		"shared":        {func(m *TrustModel) { m.Host = Shared }, false, TierContainer},
		"secrets":       {func(m *TrustModel) { m.Secrets = HighValue }, false, TierContainer},
		"targets":       {func(m *TrustModel) { m.UntrustedInput = Yes }, false, TierContainer},
		"adversarial":   {func(m *TrustModel) { m.Generator = Adversarial }, true, TierKernel},
		"unknown":       {func(m *TrustModel) { m.Host = HostUnknown }, true, TierContainer},
		"contradiction": {func(m *TrustModel) { m.Conflicts = []Fact{FactHost} }, true, TierContainer},
		"combined": {func(m *TrustModel) {
			m.Generator, m.UntrustedInput, m.ExternalSideEffects, m.Secrets = Local, Yes, Yes, HighValue
		}, true, TierKernel},
	} {
		before := mild
		c.before(&before)
		in := input(mild, nil)
		in.latched = Decide(before).Fired
		s := settle(in)
		d := s.Decision
		if s.Required != TierContainer || d.Required != TierContainer || d.Advised != c.advised || d.Approval != c.approval {
			t.Errorf("%s: tier %v, decision %+v", what, s.Required, d)
		}
		for _, f := range d.Fired {
			if !f.Latched {
				t.Errorf("%s: %+v fires now", what, f)
			}
		}
		if len(Decide(mild).NotFired) != 7 || len(d.NotFired) == 7 {
			t.Errorf("%s: quiet are %v", what, d.NotFired)
		}
	}
	unwatched := mild
	unwatched.Unattended = Yes
	in := input(unwatched, nil)
	before := mild
	before.Generator = SelfTuned
	if in.latched = Decide(before).Fired; !settle(in).Decision.Approval {
		t.Error("a latched generator in an unattended run needs no approval")
	}
}

// Only the canonical form is read: there is no second way to read such a file.
func TestDecodeCanonical(t *testing.T) {
	t.Parallel()
	good := canonicalJSON(goodOverride())
	var indented map[string]any
	if err := json.Unmarshal(good, &indented); err != nil {
		t.Fatal(err)
	}
	wide, _ := json.MarshalIndent(json.RawMessage(good), "", "\t")
	marked := goodOverride()
	marked.Reason = "the engine's disk is < 1 % free & being replaced"
	html, err := json.Marshal(marked)
	if err != nil || bytes.Equal(html, canonicalJSON(marked)) || decodeCanonical(html, new(Override)) != nil ||
		decodeCanonical(canonicalJSON(marked), new(Override)) != nil {
		t.Errorf("with marks that HTML escapes: %s, %v", html, err)
	}
	for what, text := range map[string]string{"as it is": string(good), "indented": string(wide), "with a line end": string(good) + "\n"} {
		var o Override
		if err := decodeCanonical([]byte(text), &o); err != nil || o.To != TierConfined {
			t.Errorf("%s: %+v, %v", what, o, err)
		}
	}
	for what, text := range map[string]string{
		"empty":          "",
		"null":           "null",
		"a list":         "[]",
		"two":            string(good) + string(good),
		"text after it":  string(good) + "x",
		"unknown field":  strings.Replace(string(good), `{`, `{"enabled":false,`, 1),
		"repeated field": strings.Replace(string(good), `{`, `{"to":"guarded",`, 1),
		"other case":     strings.Replace(string(good), `"to"`, `"To"`, 1),
		"missing field":  strings.Replace(string(good), `"ticket":"",`, ``, 1),
		"other order":    `{"from":"container","triggers":["untrusted-generation"]` + string(good[strings.Index(string(good), `,"to"`):]),
		"number":         strings.Replace(string(good), `"confined"`, `2`, 1),
		"unknown name":   strings.Replace(string(good), `"confined"`, `"none"`, 1),
		"other zone":     strings.Replace(string(good), `11:00:00Z`, `11:00:00+00:00`, 1),
		"escaped":        strings.Replace(string(good), `repaired`, `\u0072epaired`, 1),
		"not UTF-8":      strings.Replace(string(good), `repaired`, "\xffepaired", 1),
	} {
		if text == string(good) {
			t.Fatalf("%s: nothing was changed", what)
		}
		if err := decodeCanonical([]byte(text), new(Override)); err == nil {
			t.Errorf("%s: taken: %s", what, text)
		}
	}
}

// What the documentation shows can be read.
func TestDocumentedApproval(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("permit.go")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(source), "//\t{\n")
	text, _, found := strings.Cut(text, "//\t}\n")
	var a Approval
	err = decodeCanonical([]byte("{"+strings.ReplaceAll(text, "//\t", "")+"}"), &a)
	if !found || err != nil || a.RunID != "run-7" || a.Expires.Sub(a.Created) > maxPermit || readable(a.Reason) < minReason {
		t.Errorf("%+v, %v", a, err)
	}
}

func FuzzDecodeCanonical(f *testing.F) {
	f.Add(canonicalJSON(goodOverride()))
	f.Add([]byte(`{"triggers":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var o, again Override
		if decodeCanonical(data, &o) != nil {
			return
		}
		if err := decodeCanonical(canonicalJSON(&o), &again); err != nil || string(canonicalJSON(&o)) != string(canonicalJSON(&again)) {
			t.Errorf("%q: not stable: %v", data, err)
		}
	})
}
