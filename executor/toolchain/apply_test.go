// SPDX-License-Identifier: Apache-2.0

package toolchain_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/toolchain"
)

func TestApply(t *testing.T) {
	t.Parallel()
	tc := toolchain.Toolchain{
		Name: "x", Mounts: []executor.Mount{{Source: "/opt/x"}}, Env: map[string]string{"X_HOME": "/opt/x"},
		Path: []string{"/opt/x/bin"},
	}
	for name, tt := range map[string]struct{ before, want executor.Spec }{
		"empty": {executor.Spec{}, executor.Spec{
			Mounts: tc.Mounts, Env: map[string]string{"X_HOME": "/opt/x", "PATH": "/opt/x/bin:" + executor.DefaultPath},
		}},
		"others stay": {
			executor.Spec{Mounts: []executor.Mount{{Source: "/opt/y"}}, Env: map[string]string{"Y": "1", "PATH": "/p"}},
			executor.Spec{
				Mounts: []executor.Mount{{Source: "/opt/y"}, {Source: "/opt/x"}},
				Env:    map[string]string{"Y": "1", "X_HOME": "/opt/x", "PATH": "/opt/x/bin:/p"},
			},
		},
		"the same already": {
			executor.Spec{
				Mounts: []executor.Mount{{Source: "/opt/x/", Target: "/opt/./x"}},
				Env:    map[string]string{"X_HOME": "/opt/x", "PATH": "/opt/x/bin"},
			},
			executor.Spec{
				Mounts: []executor.Mount{{Source: "/opt/x/", Target: "/opt/./x"}},
				Env:    map[string]string{"X_HOME": "/opt/x", "PATH": "/opt/x/bin"},
			},
		},
		"an empty PATH": {
			executor.Spec{Env: map[string]string{"PATH": ""}},
			executor.Spec{Mounts: tc.Mounts, Env: map[string]string{"X_HOME": "/opt/x", "PATH": "/opt/x/bin"}},
		},
		"the directory is behind another": {
			executor.Spec{Env: map[string]string{"PATH": "/p:/opt/x/bin"}},
			executor.Spec{Mounts: tc.Mounts, Env: map[string]string{"X_HOME": "/opt/x", "PATH": "/opt/x/bin:/p:/opt/x/bin"}},
		},
	} {
		for range 2 { // the second time changes nothing
			if err := tc.Apply(&tt.before); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if diff := cmp.Diff(tt.want, tt.before); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// Several toolchains fit into one specification.
func TestApplyTwo(t *testing.T) {
	t.Parallel()
	var spec executor.Spec
	for _, tc := range []toolchain.Toolchain{
		{Name: "a", Path: []string{"/a"}}, {Name: "b", Path: []string{"/b", "/c"}}, {},
	} {
		if err := tc.Apply(&spec); err != nil {
			t.Error(err)
		}
	}
	if want := "/b:/c:/a:" + executor.DefaultPath; spec.Env["PATH"] != want {
		t.Errorf("%q, want %q", spec.Env["PATH"], want)
	}
}

// Every conflict is named, and the specification stays as it was.
func TestConflicts(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(work, link); err != nil {
		t.Fatal(err)
	}
	mount := func(m executor.Mount) toolchain.Toolchain { return toolchain.Toolchain{Mounts: []executor.Mount{m}} }
	for name, tt := range map[string]struct {
		tc   toolchain.Toolchain
		spec executor.Spec
		want []string
	}{
		"variable": {
			toolchain.Toolchain{Env: map[string]string{"A": "1", "B": "2", "C": "3"}},
			executor.Spec{Env: map[string]string{"A": "2", "B": "", "C": "3"}},
			[]string{`Env["A"]`, `Env["B"]`},
		},
		"PATH as a variable": {
			toolchain.Toolchain{Env: map[string]string{"PATH": "/x"}}, executor.Spec{}, []string{`Env["PATH"]`},
		},
		"PATH element": {
			toolchain.Toolchain{Path: []string{"bin", "/a:/b", "/c"}}, executor.Spec{}, []string{"Path[0]", "Path[1]"},
		},
		"another source": {
			mount(executor.Mount{Source: "/a"}), executor.Spec{Mounts: []executor.Mount{{Source: "/b", Target: "/a"}}},
			[]string{`Mounts["/a"]`},
		},
		"copy-on-write": {
			mount(executor.Mount{Source: "/a"}), executor.Spec{Mounts: []executor.Mount{{Source: "/a", CopyOnWrite: true}}},
			[]string{`Mounts["/a"]`},
		},
		"relative": {mount(executor.Mount{Source: "a"}), executor.Spec{}, []string{"Mounts[0]"}},
		"in the workspace": {
			mount(executor.Mount{Source: filepath.Join(work, "sdk")}), executor.Spec{Workspace: work},
			[]string{`Mounts["` + work + `/sdk"]`},
		},
		"by a link": {
			mount(executor.Mount{Source: filepath.Join(link, "sdk"), Target: "/t"}), executor.Spec{Workspace: work},
			[]string{`Mounts["/t"]`},
		},
		"the workspace itself": {
			mount(executor.Mount{Source: work}), executor.Spec{Workspace: link}, []string{`Mounts["` + work + `"]`},
		},
		"around the workspace": {
			mount(executor.Mount{Source: filepath.Dir(work), Target: "/t"}), executor.Spec{Workspace: work},
			[]string{`Mounts["/t"]`},
		},
	} {
		before := tt.spec
		err := tt.tc.Apply(&tt.spec)
		if !errors.Is(err, toolchain.ErrConflict) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		e, _ := errors.AsType[*toolchain.ConflictError](err)
		var fields []string
		for _, c := range e.Conflicts {
			fields = append(fields, c.Field)
			if !strings.Contains(err.Error(), c.Field) || c.Rule == "" {
				t.Errorf("%s: %v does not say %+v", name, err, c)
			}
		}
		if diff := cmp.Diff(tt.want, fields); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if one, ok := errors.AsType[toolchain.Conflict](err); !ok || one != e.Conflicts[0] {
			t.Errorf("%s: the first conflict is %+v", name, one)
		}
		if diff := cmp.Diff(before, tt.spec); diff != "" {
			t.Errorf("%s: the specification has changed:\n%s", name, diff)
		}
	}
}

// What the specification shares with others is not written to.
func TestApplyCopies(t *testing.T) {
	t.Parallel()
	env, mounts := map[string]string{}, make([]executor.Mount, 0, 8)
	a := executor.Spec{Env: env, Mounts: mounts}
	tc := toolchain.Toolchain{Env: map[string]string{"A": "1"}, Mounts: []executor.Mount{{Source: "/a"}}}
	if err := tc.Apply(&a); err != nil {
		t.Fatal(err)
	}
	if len(env) != 0 || mounts[:1][0] != (executor.Mount{}) {
		t.Errorf("%v %v", env, mounts[:1])
	}
	a.Env["A"] = "2"
	if tc.Env["A"] != "1" {
		t.Error("the toolchain has changed")
	}
}
