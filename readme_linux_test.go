// SPDX-License-Identifier: Apache-2.0

package containment_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/internal/testenv"
)

// TestReadme builds the program of README.md as it stands there, runs it as a reader would, and compares what it prints
// with what README.md says.
func TestReadme(t *testing.T) {
	testenv.Need(t, "go-caches")
	testenv.Need(t, "seccomp")
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, printed := block(t, readme, "go"), block(t, readme, "text")

	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "readme")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", binary, source)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the program of README.md does not build: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), binary).CombinedOutput()
	if err != nil {
		t.Fatalf("the program of README.md fails: %v\n%s", err, out)
	}
	if diff := cmp.Diff(printed, string(out)); diff != "" {
		t.Errorf("README.md promises other output (-promised +printed):\n%s", diff)
	}
	if after, err := os.ReadFile("README.md"); err != nil || string(after) != string(readme) {
		t.Errorf("README.md, which the run replaced in its copy, has changed on the host: %v", err)
	}
}

// TestPolicyOfTheManual: the policy that docs/migration.md shows is one.
func TestPolicyOfTheManual(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := allowlist.Load(strings.NewReader(block(t, page, "yaml")))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"src/a.go": true, "migrations/1.sql": false, "tests/a.go": false, "src/.git/x": false} {
		if d := policy.Explain(allowlist.Modify, path); d.Allowed != want {
			t.Errorf("%s: %+v", path, d)
		}
	}
}

// block returns the first fenced block of a language.
func block(t *testing.T, text []byte, language string) string {
	t.Helper()
	found := regexp.MustCompile("(?s)\n```" + language + "\n(.*?)```").FindSubmatch(text)
	if found == nil {
		t.Fatalf("there is no block of %s", language)
	}
	return string(found[1])
}
