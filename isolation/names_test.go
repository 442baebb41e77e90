// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"encoding"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
)

// name is an enumeration whose values travel as names.
type name interface {
	~uint8
	fmt.Stringer
	encoding.TextMarshaler
}

func names[T name, P interface {
	*T
	encoding.TextUnmarshaler
}](t *testing.T, zero string, want ...string,
) {
	t.Helper()
	seen := map[string]bool{}
	for v := range 256 {
		text, err := T(v).MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		counts := T(v)
		if v >= len(want) {
			counts = 0
			if got := T(v).String(); got != fmt.Sprintf("%s(%d)", zero, v) {
				t.Errorf("%T %d prints as %q", T(0), v, got)
			}
		} else if string(text) != want[v] || T(v).String() != want[v] || seen[want[v]] {
			t.Errorf("%T %d is written as %q, want %q", T(0), v, text, want[v])
		}
		seen[string(text)] = true
		back := T(77)
		if err := P(&back).UnmarshalText(text); err != nil || back != counts {
			t.Errorf("%T %q: got %v, %v", T(0), text, back, err)
		}
	}
	for _, bad := range []string{"", "Unknown", "UNKNOWN", " " + zero, zero + "(9)", "3", "\x00", strings.ToUpper(want[1])} {
		back := T(1)
		if err := P(&back).UnmarshalText([]byte(bad)); !errors.Is(err, isolation.ErrName) || back != 1 {
			t.Errorf("%T %q: got %v, %v; want ErrName and no change", T(0), bad, back, err)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	names[isolation.GeneratorTrust](t, "unknown", "unknown", "trusted-provider", "local", "self-tuned", "adversarial")
	names[isolation.Host](t, "unknown", "unknown", "single-operator", "shared")
	names[isolation.Answer](t, "unknown", "unknown", "no", "yes")
	names[isolation.Secrets](t, "unknown", "unknown", "none", "low-value", "high-value")
	names[isolation.Fact](t, "unknown", "unknown", "generator", "host", "external-side-effects", "untrusted-input", "secrets",
		"unattended")
	names[isolation.Tier](t, "invalid", "invalid", "recovery", "guarded", "confined", "container", "kernel")
	names[isolation.Trigger](t, "unknown", "unknown", "untrusted-generation", "shared-host", "untrusted-targets", "secrets",
		"combined", "unknown-fact", "contradiction")
	names[isolation.Ruling](t, "reject", "reject", "keep")
	names[isolation.FindingKind](t, "unknown", "unknown", "no-report", "too-large", "malformed", "forged", "run", "failed",
		"unfinished", "skipped", "vanished", "too-few", "no-baseline")
	names[isolation.RecordKind](t, "unknown", "unknown", "decision", "observation", "verification", "override", "approval",
		"clear", "phase", "verdict", "note")
}

func TestTiers(t *testing.T) {
	t.Parallel()
	tiers := []isolation.Tier{isolation.TierRecovery, isolation.TierGuarded, isolation.TierConfined, isolation.TierContainer,
		isolation.TierKernel}
	for i, tier := range tiers {
		if i > 0 && (!tier.Needs().Has(tiers[i-1].Needs()) || tier.Needs() == tiers[i-1].Needs() || tier <= tiers[i-1]) {
			t.Errorf("%v adds nothing to %v", tier, tiers[i-1])
		}
		if got := isolation.Reached(tier.Needs()); got != tier {
			t.Errorf("what %v needs reaches %v", tier, got)
		}
		for one := range tier.Needs().All() {
			if got := isolation.Reached(tier.Needs() &^ one); got >= tier {
				t.Errorf("%v is reached without %v", tier, one)
			}
		}
	}
	if isolation.TierKernel.Needs() != executor.AllCapabilities {
		t.Errorf("not needed by any tier: %v", isolation.TierKernel.Needs().Missing(executor.AllCapabilities))
	}
	for _, forged := range []isolation.Tier{0, 6, 255} {
		if forged.Needs() != executor.AllCapabilities || forged.Level() != "" {
			t.Errorf("%v needs %v", forged, forged.Needs())
		}
	}
	if got := isolation.TierConfined.Level() + " " + isolation.TierKernel.Level(); got != "1.5 3" {
		t.Errorf("levels %q", got)
	}
}
