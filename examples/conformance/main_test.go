// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64 || riscv64 || loong64)

package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestNaive looks for what must be in the output. All of it is not compared: the suite grows, and some attacks succeed for
// root only.
func TestNaive(t *testing.T) {
	for _, tc := range []struct {
		claims string
		want   []string
		not    []string
	}{
		{
			"CleanEnv,ProtectedReadOnly",
			[]string{
				"claimed\n  CleanEnv ", "\n    broken   fds: ", "\n  ProtectedReadOnly ", "\n    broken   protected-chmod: ",
				"\n    broken   protected-rename: ", "\nnot claimed\n  HostEnvHidden      a run that requires it is refused\n",
				"\nit does not keep what it claims",
			},
			[]string{"unproven", "env-exact", "was started all the same"},
		},
		{"NoNewPrivileges", []string{"\n    broken   no-new-privs: ", "\n  CleanEnv           a run that requires it is refused\n"}, nil},
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{"-claims", tc.claims}, &out, &errs); code != 1 || errs.Len() > 0 {
			t.Errorf("%s: exit code %d, stderr %q", tc.claims, code, errs.String())
		}
		for _, text := range tc.want {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s: the output lacks %q:\n%s", tc.claims, text, out.String())
			}
		}
		for _, text := range tc.not {
			if strings.Contains(out.String(), text) {
				t.Errorf("%s: the output has %q:\n%s", tc.claims, text, out.String())
			}
		}
	}
}

func TestWrongCalls(t *testing.T) {
	for _, tc := range []struct {
		args []string
		code int
	}{{[]string{"-h"}, 0}, {[]string{"-nosuchflag"}, 2}, {[]string{"-claims", "Everything"}, 2}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), tc.args, &out, &errs); code != tc.code || out.Len() > 0 || errs.Len() == 0 {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", tc.args, code, out.String(), errs.String())
		}
	}
}
