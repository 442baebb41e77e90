// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestDefaultList pins the list to its version: who changes a name changes the version, too, and this line, in the same
// reviewed change. The version is part of every policy digest.
func TestDefaultList(t *testing.T) {
	t.Parallel()
	const version, digest = 1, "sha256:fcfe7c5d90e7c598c8988553ec1477fe6835ed87516555231b343a64e28fd9c7"
	set, err := parseDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if got := Sum(defaultsJSON).String(); set.version != version || got != digest {
		t.Errorf("the list has version %d and %s, want %d and %s", set.version, got, version, digest)
	}
	reference, err := os.ReadFile("testdata/protected_defaults.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(reference, defaultsJSON) {
		t.Error("the embedded list differs from testdata/protected_defaults.json")
	}
	seen := map[string]bool{}
	for _, r := range set.rules {
		if seen[foldKey(r.rule.Pattern)] || strings.Contains(r.rule.Pattern, "/") {
			t.Errorf("%q stands twice, or is anchored", r.rule.Pattern)
		}
		seen[foldKey(r.rule.Pattern)] = true
	}
	if len(seen) != 395 {
		t.Errorf("%d patterns, want 395", len(seen))
	}
}
