// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
)

func TestPythonPlaces(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer pythonAnswer
		want   []string
	}{
		"of the system": {
			pythonAnswer{
				Executable: "/usr/bin/python3", Prefix: "/usr", Base: "/usr", Exec: "/usr",
				Library: []string{"/usr/lib/python3.11"},
			},
			[]string{"/usr/bin/python3", "/usr/lib/python3.11"},
		},
		"a prefix of its own, as pyenv's": {
			pythonAnswer{
				Executable: "/opt/py/3.12/bin/python3", Prefix: "/opt/py/3.12", Base: "/opt/py/3.12", Exec: "/opt/py/3.12",
			},
			[]string{"/opt/py/3.12/bin/python3", "/opt/py/3.12", "/opt/py/3.12", "/opt/py/3.12"},
		},
		"a virtual environment": {
			pythonAnswer{
				Executable: "/srv/venv/bin/python3", Prefix: "/srv/venv", Base: "/usr", Exec: "/usr",
				Library: []string{"/usr/lib/python3.11"},
			},
			[]string{"/srv/venv/bin/python3", "/usr/lib/python3.11", "/srv/venv"},
		},
	} {
		if diff := cmp.Diff(tt.want, tt.answer.places()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNodePlaces(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		"/opt/node-v20/bin/node": "/opt/node-v20", "/usr/bin/node": "", "/usr/local/bin/node": "", "/opt/bin/node": "",
		"/bin/node": "",
	} {
		list := nodePlaces(program)
		if list[0] != program {
			t.Errorf("%s: %q", program, list)
		}
		if got := list[len(list)-1]; want != "" && got != want || want == "" && got != program && got != "/usr/share/nodejs" {
			t.Errorf("%s: %q", program, list)
		}
	}
}

// What links lead to is mounted too, and nothing twice.
func TestMounts(t *testing.T) {
	t.Parallel()
	d, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real, link := filepath.Join(d, "sdk-1"), filepath.Join(d, "sdk")
	if err := os.MkdirAll(filepath.Join(real, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("sdk-1", link); err != nil {
		t.Fatal(err)
	}
	want := []executor.Mount{{Source: link, Target: link}, {Source: real, Target: real}}
	got := mounts(link, filepath.Join(link, "bin"), real, real+"/", filepath.Join(d, "missing"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
