// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"testing"
	"time"

	"github.com/evoseal/containment/isolation"
)

// The zero model is the dearest one: everything fires.
func BenchmarkDecide(b *testing.B) {
	quiet := isolation.TrustModel{
		Generator: isolation.TrustedProvider, Host: isolation.SingleOperator, ExternalSideEffects: isolation.No,
		UntrustedInput: isolation.No, Secrets: isolation.NoSecrets, Unattended: isolation.No,
		DeclaredBy: "A. Person", DeclaredAt: time.Date(2026, 1, 2, 15, 4, 5, 6, time.UTC),
		Evidence: map[isolation.Fact]string{isolation.FactHost: "one account", isolation.FactGenerator: "contract 17"},
	}
	for name, m := range map[string]isolation.TrustModel{"zero": {}, "quiet": quiet} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				isolation.Decide(m)
			}
		})
	}
}
