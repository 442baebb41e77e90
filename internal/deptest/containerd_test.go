// SPDX-License-Identifier: Apache-2.0

package deptest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/internal/testenv"
)

// nested is the module of the container client. Its users pay for what stands here, and for what that needs.
const nested = "executor/containerd"

// nestedProduction lists the modules whose packages its own code imports, nestedTestOnly those of its tests.
var (
	nestedProduction = map[string]string{
		module:                                   "the contract and what all executors share",
		"github.com/containerd/containerd/v2":    "the client",
		"github.com/containerd/containerd/api":   "the messages of its services",
		"github.com/containerd/errdefs":          "what its errors mean",
		"github.com/containerd/errdefs/pkg":      "the same of errors from the wire",
		"github.com/containerd/typeurl/v2":       "its way to pass a specification",
		"github.com/containerd/cgroups/v3":       "the messages with a box's counters",
		"github.com/opencontainers/runtime-spec": "what a box is",
		"github.com/opencontainers/image-spec":   "names of layers",
		"github.com/opencontainers/go-digest":    "names of content",
		"golang.org/x/sys":                       "system calls",
		"google.golang.org/grpc":                 "tells errors of the wire from others; a fake daemon in tests",
	}
	nestedTestOnly = map[string]string{
		"github.com/google/go-cmp":   "differences in tests",
		"google.golang.org/protobuf": "a fake daemon",
	}
)

func TestContainerdRequires(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "go-caches")
	var got []string
	for _, r := range readGoMod(t, nested+"/go.mod").Require {
		if !r.Indirect {
			got = append(got, r.Path)
		}
	}
	slices.Sort(got)
	want := slices.Sorted(maps.Keys(nestedProduction))
	want = slices.Sorted(slices.Values(slices.AppendSeq(want, maps.Keys(nestedTestOnly))))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("direct requirements (-listed +found); a new one needs its reason in internal/deptest:\n%s", diff)
	}
}

// TestContainerdImports: what runs inside a box, or talks to it, knows nothing of containerd, and no module is used beyond the
// list.
func TestContainerdImports(t *testing.T) {
	t.Parallel()
	packages := 0
	for _, p := range goListIn(t, nested, "linux", "./...") {
		packages++
		inside := strings.HasPrefix(p.ImportPath, module+"/"+nested+"/internal/") || strings.HasPrefix(p.ImportPath, module+"/"+nested+"/cmd/")
		for _, imported := range p.Imports {
			if problem := checkNested(imported, inside); problem != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, problem)
			}
		}
	}
	if packages < 2 {
		t.Errorf("go list named %d packages", packages)
	}
}

// checkNested judges one import of a package of the nested module.
func checkNested(imported string, inside bool) string {
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") {
		return "" // the standard library, and "C", which no file of ours uses
	}
	var longest string
	for mod := range nestedProduction {
		if (imported == mod || strings.HasPrefix(imported, mod+"/")) && len(mod) > len(longest) {
			longest = mod
		}
	}
	switch {
	case longest == "":
		return "its module is not on the list in internal/deptest"
	case slices.Contains(notFromProduction, relative(imported)):
		return "it is for tests only"
	case inside && longest != module && longest != "golang.org/x/sys":
		return "what is in a box must be small and must not know the daemon"
	case longest == module && !strings.HasPrefix(relative(imported), "executor") && !strings.HasPrefix(relative(imported), "internal/"):
		return "dependencies point one way; see the table in docs/architecture.md"
	}
	return ""
}

func TestCheckNested(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		imported string
		inside   bool
		ok       bool
	}{
		{"fmt", true, true},
		{"net/http", false, true},
		{"github.com/containerd/containerd/v2/client", false, true},
		{"github.com/containerd/containerd/v2/client", true, false},
		{"github.com/containerd/errdefs", true, false},
		{"golang.org/x/sys/unix", true, true},
		{"github.com/containerd/errdefs/pkg/errgrpc", false, true},
		{"github.com/sirupsen/logrus", false, false},
		{module + "/executor", true, true},
		{module + "/executor/internal/hostrun", false, true},
		{module + "/internal/lease", true, true},
		{module + "/internal/testenv", false, false},
		{module + "/isolation", false, false},
	} {
		if problem := checkNested(c.imported, c.inside); (problem == "") != c.ok {
			t.Errorf("%s (inside %t): %q", c.imported, c.inside, problem)
		}
	}
}
