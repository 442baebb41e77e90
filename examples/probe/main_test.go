// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/examples/internal/executors"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/testenv"
	"github.com/evoseal/containment/isolation"
)

// probe runs the program, which must find an executor of tier 1 at least: these are tests of what it says then.
func probe(t *testing.T, args ...string) string {
	t.Helper()
	testenv.Need(t, "landlock")
	testenv.Need(t, "seccomp")
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, &out, &errs); code != 0 || errs.Len() > 0 {
		t.Fatalf("exit code %d, stderr %q, stdout:\n%s", code, errs.String(), out.String())
	}
	return out.String()
}

// TestJSON: everything is accounted for, by every executor.
func TestJSON(t *testing.T) {
	var h host
	decoder := json.NewDecoder(strings.NewReader(probe(t, "-json")))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&h); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range h.Executors {
		names = append(names, f.Name)
		if f.Error != "" {
			if f.Fix == "" || f.Tier != isolation.TierInvalid || f.Capabilities != 0 {
				t.Errorf("%s is not there, and yet: %+v", f.Name, f)
			}
			continue
		}
		all := f.Capabilities
		for _, m := range f.Missing {
			if all |= m.Capability; m.Fix == "" {
				t.Errorf("%s: nothing says how to get %v", f.Name, m.Capability)
			}
		}
		if all != executor.AllCapabilities || f.Tier != isolation.Reached(f.Capabilities) || f.Proven {
			t.Errorf("%s: tier %v, capabilities and what is missing %v", f.Name, f.Tier, all)
		}
		if len(f.Limits) != 11 { // the fields of executor.Limits
			t.Errorf("%s says of %d limits what enforces them: %+v", f.Name, len(f.Limits), f.Limits)
		}
	}
	if diff := cmp.Diff(executors.Names(), names); diff != "" {
		t.Errorf("executors (-want +got):\n%s", diff)
	}
}

// TestTable: what is proven is in the table, and what is not there is named with the way to get it.
func TestTable(t *testing.T) {
	out := probe(t, "-prove")
	for _, want := range []string{"rlimit", ", proven", "\nCleanEnv ", "\nOwnKernel ", "\nMemory ", "\nmissing in rlimit\n", "gVisor"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	for _, not := range []string{"claimed", "?"} {
		if strings.Contains(out, not) {
			t.Errorf("the output has %q:\n%s", not, out)
		}
	}
}

func TestWrongCalls(t *testing.T) {
	for args, want := range map[string]int{"-h": 0, "-nosuchflag": 2} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{args}, &out, &errs); code != want || out.Len() > 0 || errs.Len() == 0 {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, code, out.String(), errs.String())
		}
	}
}
