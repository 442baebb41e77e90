// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/evoseal/containment/internal/testenv"
)

// TestAttack: whatever an executor claims here holds, on the way in something is always refused, and an honest variant is
// kept. What is claimed differs from caller to caller, so each cell may also say that it is not.
func TestAttack(t *testing.T) {
	testenv.Need(t, "seccomp")
	testenv.Need(t, "landlock")
	testenv.Need(t, "bubblewrap")
	var out, errs bytes.Buffer
	if code := run(t.Context(), nil, &out, &errs); code != 0 {
		t.Errorf("exit code %d, stderr %q", code, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	cells := func(line string) []string { return regexp.MustCompile(`  +`).Split(strings.TrimSpace(line), -1) }
	if want := []string{"the variant", "plain process", "bubblewrap", "rlimit"}; !slices.Equal(cells(lines[0]), want) {
		t.Fatalf("the columns are %q:\n%s", cells(lines[0]), out.String())
	}
	if len(lines) != len(attacks())+2 {
		t.Fatalf("%d lines for %d attacks:\n%s", len(lines), len(attacks()), out.String())
	}
	for i, a := range attacks() {
		row := cells(lines[i+1])
		want := []string{"contained", "not claimed"}
		if a.script == nil {
			want = []string{"refused"}
		} else if a.needs == 0 {
			want = []string{"contained"}
		}
		if row[0] != a.name || row[1] != "succeeds" || !slices.Contains(want, row[2]) || !slices.Contains(want, row[3]) {
			t.Errorf("%q; want one of %q", row, want)
		}
	}
	if row := cells(lines[len(lines)-1]); !slices.Equal(row, []string{"does its work", "–", "kept", "kept"}) {
		t.Errorf("the honest variant: %q", row)
	}
}

// TestTable: every cell that is no proof shows in the exit code.
func TestTable(t *testing.T) {
	t.Parallel()
	full := func(name string, o outcome) column {
		return column{name: name, cells: slices.Repeat([]cell{{outcome: o, detail: "seen"}}, len(attacks()))}
	}
	lost := full("x", refused)
	lost.honest = context.Canceled
	for _, tc := range []struct {
		plain outcome
		col   column
		holds bool
		want  string
	}{
		{succeeds, full("x", contained), true, "contained"},
		{succeeds, full("x", refused), true, "refused"},
		{succeeds, full("x", notClaimed), true, "not claimed"},
		{succeeds, full("x", broken), false, "BROKEN"},
		{succeeds, full("x", unproven), false, "unproven"},
		{fails, full("x", contained), false, "unproven"}, // an attack that fails anyway proves nothing
		{fails, full("x", broken), false, "BROKEN"},
		{succeeds, full("x", ""), false, ""},
		{succeeds, lost, false, "not kept"},
	} {
		var out bytes.Buffer
		if holds := printTable(&out, []column{full("plain process", tc.plain), tc.col}, false); holds != tc.holds {
			t.Errorf("%s, %s: holds %v", tc.plain, tc.want, holds)
		}
		if !strings.Contains(out.String(), tc.want) {
			t.Errorf("the table lacks %q:\n%s", tc.want, out.String())
		}
	}
}

func TestWrongCalls(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		code int
	}{{[]string{"-h"}, 0}, {[]string{"-nosuchflag"}, 2}, {[]string{"-executor", "hope"}, 2}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), tc.args, &out, &errs); code != tc.code || out.Len() > 0 || errs.Len() == 0 {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", tc.args, code, out.String(), errs.String())
		}
	}
}
