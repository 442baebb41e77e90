// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/rlimit"
	"github.com/evoseal/containment/isolation"
)

// BenchmarkVerify is what Open pays for a proof, and BenchmarkCurrent what each variant pays for its being valid still.
func BenchmarkVerify(b *testing.B) {
	guarded, err := rlimit.New(b.Context(), rlimit.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer guarded.Close()
	for _, c := range []struct {
		name string
		ex   executor.Executor
		tier isolation.Tier
	}{
		{"rlimit", guarded, isolation.TierGuarded}, {"bubblewrap", confined(b), isolation.TierConfined},
	} {
		b.Run(c.name, func(b *testing.B) {
			o := patient(c.tier.Needs())
			o.Fresh = true
			for b.Loop() {
				if _, err := isolation.Verify(b.Context(), c.ex, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCurrent(b *testing.B) {
	ex := confined(b)
	report, err := isolation.Verify(b.Context(), ex, patient(isolation.TierConfined.Needs()))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := report.Current(b.Context(), ex, time.Now()); err != nil {
			b.Fatal(err)
		}
	}
}
