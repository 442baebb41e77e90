// SPDX-License-Identifier: Apache-2.0

package deptest

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// dependency is a module that the root module may be built with.
type dependency struct {
	why string
	// packages, if not empty, are the only ones that may be used, as paths below the module; "." is its root.
	packages []string
}

// production lists every module whose packages may be linked into a consumer's program.
var production = map[string]dependency{
	"golang.org/x/sys":                   {why: "system calls"},
	"github.com/bmatcuk/doublestar/v4":   {why: "artifact patterns", packages: []string{"."}},
	"github.com/hashicorp/go-multierror": {why: "collects clean-up failures, inside", packages: []string{"."}},
	"github.com/hashicorp/errwrap":       {why: "behind go-multierror", packages: []string{"."}},
	"github.com/landlock-lsm/go-landlock": {
		why: "Landlock's calls; its rules for the calling process would bind the wrong one", packages: []string{"landlock/syscall"},
	},
	"kernel.org/pub/linux/libs/security/libcap/psx": {why: "behind go-landlock", packages: []string{"."}},
	"golang.org/x/net":                {why: "instructions of seccomp filters", packages: []string{"bpf"}},
	"golang.org/x/text":               {why: "normal forms and case folding of protected names"},
	"go.yaml.in/yaml/v3":              {why: "policy files, with line numbers", packages: []string{"."}},
	"github.com/bluekeyes/go-gitdiff": {why: "git patches, behind our scanner", packages: []string{"gitdiff"}},
	"github.com/klauspost/compress": {
		why:      "S2, the codec of checkpoints; s2 alone and what it stands on",
		packages: []string{"s2", "internal/race", "internal/le", "internal/snapref"},
	},
}

// testOnly lists what tests may use beyond that. It never reaches a consumer.
var testOnly = map[string]dependency{
	"github.com/google/go-cmp": {why: "differences in tests; it panics, so never elsewhere"},
	// Its tables take 0.3 ms to build in every process that links it, and so in every stage of a run.
	"github.com/elastic/go-seccomp-bpf": {why: "compared with the filters that we assemble"},
}

func TestModulesInProduction(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			checkModules(t, goList(t, goos, "-deps", "./..."), production)
		})
	}
}

func TestModulesInTests(t *testing.T) {
	allowed := maps.Clone(production)
	maps.Copy(allowed, testOnly)
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			checkModules(t, goList(t, goos, "-deps", "-test", "./..."), allowed)
		})
	}
}

// checkModules fails for each package that comes from a module outside the list.
func checkModules(t *testing.T, packages []listedPackage, allowed map[string]dependency) {
	t.Helper()
	ours := 0
	for _, p := range packages {
		importPath, _, _ := strings.Cut(p.ImportPath, " ") // "path [path.test]" is the variant for a test
		switch {
		case p.Standard:
		case p.Module == nil:
			t.Errorf("%s belongs to no module", importPath)
		case p.Module.Path == module:
			ours++
		default:
			if problem := checkPackage(p.Module.Path, importPath, allowed); problem != "" {
				t.Errorf("%s: %s", importPath, problem)
			}
		}
	}
	if ours == 0 {
		t.Error("go list named no package of ours")
	}
}

func checkPackage(mod, importPath string, allowed map[string]dependency) string {
	d, ok := allowed[mod]
	if !ok {
		return "module " + mod + " is not on the list in internal/deptest; a new dependency needs its reason there"
	}
	below := strings.TrimPrefix(strings.TrimPrefix(importPath, mod), "/")
	if below == "" {
		below = "."
	}
	if len(d.packages) > 0 && !slices.Contains(d.packages, below) {
		return "of module " + mod + " only " + strings.Join(d.packages, ", ") + " may be used"
	}
	return ""
}

func TestCheckPackage(t *testing.T) {
	t.Parallel()
	allowed := map[string]dependency{"a.test/whole": {}, "a.test/part": {packages: []string{".", "sub"}}}
	for importPath, c := range map[string]struct {
		mod string
		ok  bool
	}{
		"a.test/whole/x":    {"a.test/whole", true},
		"a.test/part":       {"a.test/part", true},
		"a.test/part/sub":   {"a.test/part", true},
		"a.test/part/other": {"a.test/part", false},
		"a.test/new":        {"a.test/new", false},
	} {
		if problem := checkPackage(c.mod, importPath, allowed); (problem == "") != c.ok {
			t.Errorf("%s: %q", importPath, problem)
		}
	}
}

func TestListsHaveReasons(t *testing.T) {
	t.Parallel()
	for _, list := range []map[string]dependency{production, testOnly} {
		for mod, d := range list {
			if d.why == "" {
				t.Errorf("%s is listed without a reason", mod)
			}
		}
	}
	for mod := range testOnly {
		if _, both := production[mod]; both {
			t.Errorf("%s is on both lists", mod)
		}
	}
}
