// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoseal/containment/runaway"
)

// stores are the two stores, each as a function that gives the same run again.
func stores(t *testing.T) map[string]func() runaway.Store {
	t.Helper()
	mem, dir := runaway.UnsafeMemStore(), filepath.Join(t.TempDir(), "state")
	return map[string]func() runaway.Store{
		"memory": func() runaway.Store { return mem },
		"file": func() runaway.Store {
			s, err := runaway.FileStore(dir)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	}
}

func TestStores(t *testing.T) {
	t.Parallel()
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := runaway.Open(t.Context(), runID, runaway.Limits{}, store(),
				&runaway.Options{MustExist: true}); !errors.Is(err, runaway.ErrNoState) {
				t.Errorf("a run that never was: %v", err)
			}
			l := runaway.Limits{MaxIterations: 7}
			g := open(t, store(), l, nil)
			if _, err := runaway.Open(t.Context(), runID, l, store(), nil); !errors.Is(err, runaway.ErrStateLocked) &&
				name == "file" {
				t.Errorf("a second opener: %v", err)
			}
			for n := range 6 {
				once(t, g, fresh(n))
				g = reopen(t, g, store(), l, &runaway.Options{MustExist: true})
				if st := g.Status(); st.Attempts != n+1 || st.Accepted != n+1 || st.Completed != n+1 {
					t.Fatalf("after %d: %+v", n+1, st)
				}
			}
			if steps, stop := drive(t, g, fresh); steps != 1 || stop.Reason != runaway.ReasonIterations {
				t.Errorf("%d more, then %v", steps, stop)
			}
		})
	}
}

// TestJournalIsReadable: one JSON object a line, with names that a person knows.
func TestJournalIsReadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := runaway.FileStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	g := open(t, s, runaway.Limits{}, nil)
	once(t, g, runaway.Outcome{Kind: runaway.RolledBack, Class: `"quoted"`})
	shut(t, g)
	data, err := os.ReadFile(filepath.Join(dir, runID+".journal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"op":"begin"`, `"kind":"rolled-back"`, `"max_iterations":1000`,
		`"class":"\"quoted\""`, `"op":"close"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s is not in\n%s", want, data)
		}
	}
	info, err := os.Stat(filepath.Join(dir, runID+".journal"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
