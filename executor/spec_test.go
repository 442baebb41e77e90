// SPDX-License-Identifier: Apache-2.0

package executor_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
)

func TestRequired(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		spec executor.Spec
		want executor.Capability
	}{
		{executor.Spec{}, 0},
		{executor.Spec{Require: executor.NetworkOff}, executor.NetworkOff},
		{executor.Spec{ReadOnly: []string{"a"}}, executor.ProtectedReadOnly},
		{executor.Spec{ReadOnly: []string{"a"}, Require: executor.NetworkOff}, executor.NetworkOff | executor.ProtectedReadOnly},
		{executor.Spec{Hidden: []string{"a"}}, 0},
	} {
		if got := tt.spec.Required(); got != tt.want {
			t.Errorf("%+v requires %v, want %v", tt.spec, got, tt.want)
		}
	}
}

// The list belongs to the caller: changing it must not change what later runs hide.
func TestDefaultHidden(t *testing.T) {
	t.Parallel()
	want := []string{".git", ".env"}
	first := executor.DefaultHidden()
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	first[0] = "changed"
	if diff := cmp.Diff(want, executor.DefaultHidden()); diff != "" {
		t.Error(diff)
	}
}

// The environment is exact: not one name more than is written here, whatever this process has in its own.
func TestEnviron(t *testing.T) {
	t.Setenv("CONTAINMENT_TEST_SECRET", "must not appear")
	base := []string{
		"GOCACHE=/home/run/.cache/go-build",
		"GOENV=off",
		"GOPATH=/home/run/go",
		"GOTOOLCHAIN=local",
		"HOME=/home/run",
		"LANG=C.UTF-8",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"TMPDIR=/tmp/run",
		"TZ=UTC",
		"XDG_CACHE_HOME=/home/run/.cache",
	}
	if diff := cmp.Diff(base, executor.Spec{}.Environ("/home/run", "/tmp/run")); diff != "" {
		t.Errorf("base (-want +got):\n%s", diff)
	}
	env := map[string]string{"HOME": "/elsewhere", "A": "", "B": "x=y\n\xff", "PATH": "/bin"}
	want := slices.Clone(base)
	want[4], want[6] = "HOME=/elsewhere", "PATH=/bin" // only these; what was derived from HOME stays
	want = append([]string{"A=", "B=x=y\n\xff"}, want...)
	if diff := cmp.Diff(want, executor.Spec{Env: env}.Environ("/home/run", "/tmp/run")); diff != "" {
		t.Errorf("with Env (-want +got):\n%s", diff)
	}
	if len(env) != 4 {
		t.Errorf("the caller's map became %v", env)
	}
}

func TestBaseEnvIsACopy(t *testing.T) {
	t.Parallel()
	executor.BaseEnv("/h", "/t")["PATH"] = "changed"
	if got := executor.BaseEnv("/h", "/t")["PATH"]; got != executor.DefaultPath {
		t.Errorf("PATH became %q", got)
	}
}
