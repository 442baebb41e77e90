// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor/internal/artifact"
)

// Only the incomplete files of one run go; those of another one that lives, and everything else, stay.
func TestRemoveTemps(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".one-a", ".one-b", ".two-a", "one-a", ".oneX", "keep"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := artifact.RemoveTemps(dir, "one"); err != nil {
		t.Error(err)
	}
	var got []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff([]string{".oneX", ".two-a", "keep", "one-a"}, got); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if err := artifact.RemoveTemps(filepath.Join(dir, "no-such"), "one"); err != nil {
		t.Errorf("a directory that is not there: %v", err)
	}
}
