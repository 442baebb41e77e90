// SPDX-License-Identifier: Apache-2.0

package executors_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/examples/internal/executors"
	"github.com/evoseal/containment/executor"
)

// TestAll: every executor is there or says why not, never both and never neither.
func TestAll(t *testing.T) {
	s := executors.All(t.Context(), executors.Options{})
	var names []string
	for _, c := range s.Candidates {
		names = append(names, c.Name)
		if (c.Executor == nil) == (c.Err == nil) {
			t.Errorf("%s: executor %v, error %v", c.Name, c.Executor, c.Err)
		}
		if c.Err != nil && !errors.Is(c.Err, executor.ErrUnsupported) {
			t.Errorf("%s: %v does not say what this host lacks", c.Name, c.Err)
		}
	}
	if diff := cmp.Diff(executors.Names(), names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpen(t *testing.T) {
	for _, name := range executors.Names() {
		s, err := executors.Open(t.Context(), name, executors.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Candidates) != 1 || s.Candidates[0].Name != name {
			t.Errorf("%s gives %+v", name, s.Candidates)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "Rlimit", "docker"} {
		if s, err := executors.Open(t.Context(), name, executors.Options{}); err == nil {
			t.Errorf("%q gives %+v", name, s.Candidates)
		}
	}
}
