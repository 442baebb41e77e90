// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/evoseal/containment/executor/internal/artifact"
)

// BenchmarkExtract takes 100 files of 4 KiB, by one pattern and one by one.
func BenchmarkExtract(b *testing.B) {
	f := newFixture(b)
	var each []string
	for i := range 100 {
		name := fmt.Sprintf("out/%d/%d", i%10, i)
		f.write(b, name, strings.Repeat("4 bytes.", 512))
		each = append(each, name)
	}
	for name, patterns := range map[string][]string{"pattern": {"out/**"}, "names": each} {
		b.Run(name, func(b *testing.B) {
			r := f.request(b, patterns...)
			for b.Loop() {
				artifacts, _, err := artifact.Extract(b.Context(), r)
				if err != nil || len(artifacts) != 100 {
					b.Fatalf("%d artifacts, %v", len(artifacts), err)
				}
			}
		})
	}
}
