// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/internal/testenv"
)

// steady replaces what differs from run to run and from host to host: times, sizes, who enforces what.
func steady(out string) string {
	for _, r := range []struct{ pattern, with string }{
		{`(?m)^(wall|cpu|memory|tasks)( +).*$`, "$1 …"},
		{`(?s)\nenforced\n.*`, "\nenforced …\n"},
	} {
		out = regexp.MustCompile(r.pattern).ReplaceAllString(out, r.with)
	}
	return out
}

func TestSandbox(t *testing.T) {
	for name, components := range map[string][]string{"rlimit": {"seccomp"}, "bubblewrap": {"seccomp", "bubblewrap"}} {
		t.Run(name, func(t *testing.T) {
			for _, c := range components {
				testenv.Need(t, c)
			}
			testSandbox(t, name)
		})
	}
}

func testSandbox(t *testing.T, name string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "precious")
	if err := os.WriteFile(file, []byte("data\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{
			"good", []string{"-dir", dir, "--", "sh", "-c", "cat precious; rm precious; ls; printf '\\033[2Jx'; exit 0"}, 0,
			"cause   exited: exit code 0\nstdout  10 bytes\n  | data\n  | \\x1b[2Jx\nwall …\ncpu …\nmemory …\ntasks …\n\nenforced …\n",
		},
		{
			"bad", []string{"--", "sh", "-c", "echo no >&2; exit 3"}, 1,
			"cause   exited: exit code 3\nstderr  3 bytes\n  | no\nwall …\ncpu …\nmemory …\ntasks …\n\nenforced …\n",
		},
		{
			"missing", []string{"--", "no-such-program"}, 1,
			"cause   not-found: the program does not exist in the run's view\nwall …\ncpu …\nmemory …\ntasks …\n\nenforced …\n",
		},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), slices.Concat([]string{"-executor", name}, tc.args), &stdout, &stderr); code != tc.code {
			t.Errorf("%s: exit code %d, want %d; stderr %q", tc.name, code, tc.code, stderr.String())
		}
		if diff := cmp.Diff(tc.want, steady(stdout.String())); diff != "" {
			t.Errorf("%s: output (-want +got):\n%s", tc.name, diff)
		}
		// Every field of Limits is accounted for.
		for _, limit := range []string{"Wall", "CPU", "CPUs", "Memory", "Disk", "FileSize", "Output", "Processes", "OpenFiles"} {
			if !strings.Contains(stdout.String(), "\n  "+limit+" ") {
				t.Errorf("%s: the output does not say what enforces %s:\n%s", tc.name, limit, stdout.String())
			}
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "data\n" {
		t.Errorf("the original changed: %q, %v", data, err)
	}
}

func TestWrongCalls(t *testing.T) {
	for _, tc := range []struct {
		args []string
		code int
	}{
		{nil, 2}, {[]string{"-nosuchflag"}, 2}, {[]string{"-h"}, 0}, {[]string{"-dir", "/no/such", "--", "true"}, 3},
		{[]string{"-memory", "-5", "--", "true"}, 3}, {[]string{"-executor", "hope", "--", "true"}, 3},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), tc.args, &stdout, &stderr); code != tc.code || stderr.Len() == 0 || stdout.Len() > 0 {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q; want %d and a message", tc.args, code, stdout.String(), stderr.String(), tc.code)
		}
	}
}
