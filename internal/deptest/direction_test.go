// SPDX-License-Identifier: Apache-2.0

package deptest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// layer says what the packages that match a pattern may import of ours; patterns are those of package path, except that
// a trailing "/..." covers everything below. The first layer that matches a package counts.
type layer struct {
	packages string
	imports  []string
}

// layers is the table of docs/architecture.md. Dependencies point one way: nothing imports what stands above it, and
// only isolation knows that the other packages exist. Production code counts; a test may import what it tests with.
var layers = []layer{
	{"internal/gate", []string{"internal/testenv"}},
	{"internal/...", []string{"internal/..."}},
	{"executor", []string{"internal/..."}},
	{"executor/executortest", []string{"executor"}}, // so that third parties can use it
	{"executor/internal/...", []string{"executor", "executor/internal/...", "internal/..."}},
	{"executor/*", []string{"executor", "executor/internal/...", "internal/..."}},
	{"allowlist", []string{"internal/..."}},
	{"rollback", []string{"rollback/internal/...", "internal/..."}},
	{"rollback/internal/...", []string{"rollback/internal/...", "internal/..."}},
	{"rollback/rollbacktest", []string{"rollback"}},
	{"runaway", []string{"internal/..."}},
	{"isolation", []string{"allowlist", "rollback", "runaway", "executor", "executor/executortest", "internal/..."}},
	{".", nil}, // the package documentation
}

// notFromProduction are packages for tests. A suite is a test, whatever its file names.
var notFromProduction = []string{"internal/testenv", "internal/deptest"}

func TestDirection(t *testing.T) {
	t.Parallel()
	for _, p := range goList(t, "linux", "-e", "./...") { // what does not build is not our business here
		for _, imported := range p.Imports {
			if problem := checkImport(relative(p.ImportPath), imported); problem != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, problem)
			}
		}
	}
}

// relative turns an import path of this module into a path from its top.
func relative(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

// checkImport judges one import of a package of ours, which is given relative to the top.
func checkImport(from, importPath string) string {
	if importPath != module && !strings.HasPrefix(importPath, module+"/") {
		return ""
	}
	to := relative(importPath)
	for _, l := range layers {
		if !matches(l.packages, from) {
			continue
		}
		allowed := slices.ContainsFunc(l.imports, func(pattern string) bool { return matches(pattern, to) })
		switch {
		case !allowed:
			return "dependencies point one way; see the table in docs/architecture.md"
		case from != "internal/gate" && slices.Contains(notFromProduction, to):
			return "it is for tests only"
		}
		return ""
	}
	return "this package has no place in the layers of internal/deptest"
}

func matches(pattern, name string) bool {
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == below || strings.HasPrefix(name, below+"/")
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

func TestCheckImport(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"executor", "fmt", true},
		{"executor", module + "/internal/capture", true},
		{"executor/rlimit", module + "/executor", true},
		{"executor/rlimit", module + "/internal/reexec", true},
		{"executor/rlimit", module + "/executor/internal/artifact", true},
		{"executor/internal/artifact", module + "/executor", true},
		{"executor/internal/artifact", module + "/executor/rlimit", false},
		{"internal/capture", module + "/internal/reexec", true},
		{"internal/capture", module + "/executor", false},
		{"internal/capture", module + "/internal/testenv", false},
		{"executor", module + "/executor/rlimit", false},
		{"executor", module, false},
		{"executor/rlimit", module + "/executor/bubblewrap", false},
		{"executor/rlimit", module + "/executor/executortest", false},
		{"executor/executortest", module + "/executor", true},
		{"executor/executortest", module + "/internal/reexec", false},
		{"allowlist", module + "/rollback", false},
		{"isolation", module + "/allowlist", true},
		{"isolation", module + "/executor/rlimit", false},
		{"runaway", module + "/isolation", false},
		{"surprise", module + "/executor", false},
	} {
		if problem := checkImport(c.from, c.to); (problem == "") != c.ok {
			t.Errorf("%s imports %s: %q", c.from, c.to, problem)
		}
	}
}
