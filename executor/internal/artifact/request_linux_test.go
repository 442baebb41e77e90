// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/evoseal/containment/executor/internal/artifact"
)

func TestRequestFaults(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, spoil := range map[string]func(*artifact.Request){
		"no root":          func(r *artifact.Request) { r.Root = nil },
		"no destination":   func(r *artifact.Request) { r.Dest = "" },
		"no bytes":         func(r *artifact.Request) { r.MaxBytes = 0 },
		"no files":         func(r *artifact.Request) { r.MaxFiles = -1 },
		"pattern above":    func(r *artifact.Request) { r.Patterns = []string{"../secret/key"} },
		"pattern by dots":  func(r *artifact.Request) { r.Patterns = []string{"a/../b"} },
		"pattern absolute": func(r *artifact.Request) { r.Patterns = []string{"/etc/*"} },
		"pattern NUL":      func(r *artifact.Request) { r.Patterns = []string{"a\x00"} },
		"pattern empty":    func(r *artifact.Request) { r.Patterns = []string{""} },
		"pattern broken":   func(r *artifact.Request) { r.Patterns = []string{"a[", "b{"} },
		"exclude above":    func(r *artifact.Request) { r.Exclude = []string{"../x"} },
	} {
		r := f.request(t, "f")
		spoil(&r)
		if _, _, err := artifact.Extract(t.Context(), r); !errors.Is(err, artifact.ErrRequest) {
			t.Errorf("%s: error %v", name, err)
		}
		if _, err := os.Stat(f.dest); r.Dest != "" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the destination was made", name)
		}
	}
}
