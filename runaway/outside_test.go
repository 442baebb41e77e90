// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/evoseal/containment/runaway"
)

// TestOutside: what lies in the tree is named, the store's directory and the files alike.
func TestOutside(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	tree := filepath.Join(home, "tree")
	for _, dir := range []string{tree, filepath.Join(home, "other"), filepath.Join(tree, "src")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		store, kill string
		within      bool
	}{
		"outside":   {filepath.Join(home, "ledger"), "", false},
		"store":     {filepath.Join(tree, "src", "ledger"), "", true},
		"kill file": {filepath.Join(home, "ledger2"), filepath.Join(tree, "src", "STOP"), true},
		"beside":    {filepath.Join(home, "ledger3"), filepath.Join(home, "other", "STOP"), false},
	} {
		s, err := runaway.FileStore(c.store)
		if err != nil {
			t.Fatal(err)
		}
		g := open(t, s, runaway.Limits{}, &runaway.Options{KillFile: c.kill})
		err = g.Outside(tree)
		if errors.Is(err, runaway.ErrUntrusted) != c.within || errors.Is(err, runaway.ErrConfig) != c.within {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := new(runaway.Governor).Outside(tree); !errors.Is(err, runaway.ErrClosed) {
		t.Errorf("the zero governor: %v", err)
	}
}
