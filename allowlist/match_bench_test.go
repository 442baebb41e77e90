// SPDX-License-Identifier: Apache-2.0

package allowlist_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/evoseal/containment/allowlist"
)

// benchPath is below the surface and matches no protect rule, so that every rule counts.
const benchPath = "src/internal/service/handler_user.go"

// extraRules are rules of the forms that operators write.
func extraRules(n int) []string {
	var rules []string
	for i := range n {
		rules = append(rules, []string{
			fmt.Sprintf("internal/part%d/guard.go", i), fmt.Sprintf("configs/env%d/**", i), fmt.Sprintf("gen%d_*.sql", i),
			fmt.Sprintf("*.ext%d", i), fmt.Sprintf("secret%d.txt", i), fmt.Sprintf("deploy/**/stage%d*.yaml", i),
		}[i%6])
	}
	return rules
}

func defaultPatterns(t testing.TB) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/protected_defaults.json")
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Patterns []struct{ Pattern string } }
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	var patterns []string
	for _, p := range list.Patterns {
		patterns = append(patterns, p.Pattern)
	}
	return patterns
}

func benchPolicy(t testing.TB, extra []string) *allowlist.Policy {
	t.Helper()
	p, err := allowlist.New(allowlist.Config{
		Surface: []allowlist.SurfaceRule{{Paths: []string{"src/**"}, Ops: []allowlist.Op{allowlist.Modify}}},
		Protect: extra,
		Gate:    []string{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// BenchmarkExplain judges one path with the default list and some rules more. The loop beside it asks doublestar about
// each rule, for the path and for each component, and checks no grammar.
func BenchmarkExplain(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		extra := extraRules(n)
		b.Run(fmt.Sprintf("compiled/extra=%d", n), func(b *testing.B) {
			p := benchPolicy(b, extra)
			b.ReportAllocs()
			for b.Loop() {
				if !p.Explain(allowlist.Modify, benchPath).Allowed {
					b.Fatal("denied")
				}
			}
		})
		b.Run(fmt.Sprintf("doublestar/extra=%d", n), func(b *testing.B) {
			rules := slices.Concat(defaultPatterns(b), extra)
			for i := range rules {
				rules[i] = strings.ToLower(rules[i])
			}
			b.ReportAllocs()
			for b.Loop() {
				if loopProtects(rules, strings.ToLower(benchPath)) {
					b.Fatal("protected")
				}
			}
		})
	}
}

// loopProtects is what a guard without a compiled matcher does.
func loopProtects(rules []string, name string) bool {
	for _, rule := range rules {
		for p := name; p != "."; p = path.Dir(p) {
			target := p
			if !strings.Contains(rule, "/") {
				target = path.Base(p)
			}
			if doublestar.MatchUnvalidated(rule, target) {
				return true
			}
		}
	}
	return false
}
