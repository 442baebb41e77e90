// SPDX-License-Identifier: Apache-2.0

package deptest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/evoseal/containment/internal/testenv"
)

// goVersion is the lowest release that the module accepts; go.mod says why.
const goVersion = "1.26.5"

// goMod is what we read of `go mod edit -json`.
type goMod struct {
	Module    struct{ Path string }
	Go        string
	Toolchain string
	Require   []struct {
		Path     string
		Indirect bool
	}
	Exclude []any
	Tool    []any
	Replace []struct {
		Old struct{ Path string }
		New struct{ Path string }
	}
}

// unreleased are the directories of modules that are never tagged.
var unreleased = []string{"bench/", "examples/"}

// TestReleasedModules: what a consumer downloads must not choose the consumer's toolchain, enter tools into the graph,
// or behave otherwise than here because of a replace or exclude.
func TestReleasedModules(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "go-caches")
	var found []string
	walk(t, func(name string, _ []byte) {
		dir, base := path.Split(name)
		if base != "go.mod" || strings.Contains(name, "testdata/") || slices.Contains(unreleased, dir) {
			return
		}
		found = append(found, name)
		checkGoMod(t, name, readGoMod(t, name))
	})
	if !slices.Contains(found, "go.mod") {
		t.Errorf("no go.mod at the top among %q", found)
	}
}

func readGoMod(t *testing.T, name string) goMod {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", filepath.Join(top, filepath.FromSlash(name)))
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	var m goMod
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func checkGoMod(t *testing.T, name string, m goMod) {
	t.Helper()
	if m.Toolchain != "" || len(m.Exclude) > 0 || len(m.Tool) > 0 {
		t.Errorf("%s: a released module has no toolchain, exclude or tool line", name)
	}
	dir := path.Dir(name)
	if want := path.Join(module, dir); m.Module.Path != want {
		t.Errorf("%s: names the module %s, not %s", name, m.Module.Path, want)
	}
	for _, r := range m.Replace {
		// A nested module is built against the tree beside it. Consumers ignore the line.
		if local := path.Join(dir, r.New.Path) == "." && r.Old.Path == module; !local || dir == "." {
			t.Errorf("%s: replaces %s", name, r.Old.Path)
		}
	}
	if dir == "." && m.Go != goVersion {
		t.Errorf("%s: says go %s; the lowest release with the fix that we need is %s", name, m.Go, goVersion)
	}
}
