// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/internal/testenv"
)

// TestListPackages: what can change the host is found by what it is built from, tests included, and nothing is left out.
func TestListPackages(t *testing.T) {
	testenv.Need(t, "go-caches")
	dir := makeModule(t, "var _, _ = os.Args, testing.Short")
	for name, text := range map[string]string{
		"internal/cgroup/p.go": "package p\n",
		"allowlist/p.go":       "package p\n",
		"executor/b/p.go":      "package p\n\nimport _ \"" + project + "/internal/cgroup\"\n",
		"over/p.go":            "package p\n\nimport _ \"" + project + "/executor/b\"\n",
		"tested/p.go":          "package p\n",
		"tested/p_test.go":     "package p_test\n\nimport _ \"" + project + "/over\"\n",
		"broken/p.go":          "package p\n\nimport _ \"" + project + "/not/there\"\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	packages, err := listPackages(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, p := range packages {
		if want := filepath.Join(project, p.rel); p.path != want {
			t.Errorf("%s is said to lie at %s", p.path, p.rel)
		}
		got[p.rel] = p.alone
	}
	want := map[string]bool{
		".": true, "internal/cgroup": true, "executor/b": true, "over": true, "tested": true, "allowlist": false, "broken": false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alone (-want +got):\n%s", diff)
	}
}

func some(rels ...string) (packages []pkg) {
	for _, rel := range rels {
		packages = append(packages, pkg{path: filepath.Join(project, rel), rel: rel})
	}
	return packages
}

// TestParts: what the pass with the race detector leaves out, the next one makes, by the same pattern.
func TestParts(t *testing.T) {
	t.Parallel()
	packages := some(".", "allowlist", "bench/runaway", "executor", "executor/containerd",
		"executor/containerd/internal/box", "executor/rlimit", "examples/evolve/internal/genetic")
	at := func(rel string) string { return filepath.Join(project, rel) }
	pattern := withoutRace["executor/rlimit"]
	for name, c := range map[string]struct {
		part part
		want []job
	}{
		"race": {raced, []job{
			{[]string{"-race"}, []string{at("allowlist"), at("executor"), at("executor/containerd/internal/box")}},
			{[]string{"-race", "-skip=" + pattern}, []string{at("executor/rlimit")}},
		}},
		"no race": {unraced, []job{
			{nil, []string{project, at("bench/runaway"), at("executor/containerd"), at("examples/evolve/internal/genetic")}},
			{[]string{"-run=" + pattern}, []string{at("executor/rlimit")}},
		}},
		"again": {again, []job{{nil, []string{project, at("allowlist"), at("bench/runaway"), at("executor/containerd"),
			at("executor/containerd/internal/box"), at("executor/rlimit"), at("examples/evolve/internal/genetic")}}}},
	} {
		if diff := cmp.Diff(c.want, c.part(packages), cmp.AllowUnexported(job{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestPatternsSplit: go test takes a pattern in -run for just what it leaves out by -skip, down to the subtests.
func TestPatternsSplit(t *testing.T) {
	testenv.Need(t, "go-caches")
	t.Setenv("GOWORK", "off")
	dir := makeModule(t, `var _ = os.Args

func TestHostKilled(t *testing.T) {}

func TestHostKilledOrNot(t *testing.T) {}

func TestConformance(t *testing.T) {
	for _, name := range []string{"all", "without landlock", "without cgroups", "on disk", "with sockets"} {
		t.Run(name, func(t *testing.T) { t.Run("on disk", func(*testing.T) {}) })
	}
}`)
	leaves := func(flag string) (names []string) {
		tl := newTally("only", io.Discard)
		j := job{[]string{flag + withoutRace["executor/rlimit"]}, []string{project}}
		if err := testPackages(t.Context(), tl, dir, nil, j); err != nil {
			t.Fatal(err)
		}
		for _, id := range tl.ids() {
			if id.Test != "TestConformance" {
				names = append(names, id.Test)
			}
		}
		return names
	}
	run := []string{
		"TestConformance/on_disk", "TestConformance/on_disk/on_disk", "TestConformance/with_sockets",
		"TestConformance/with_sockets/on_disk", "TestConformance/without_cgroups", "TestConformance/without_cgroups/on_disk",
		"TestConformance/without_landlock", "TestConformance/without_landlock/on_disk", "TestHostKilled",
	}
	skip := []string{"TestConformance/all", "TestConformance/all/on_disk", "TestHostKilledOrNot"}
	if diff := cmp.Diff(run, leaves("-run=")); diff != "" {
		t.Errorf("-run (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(skip, leaves("-skip=")); diff != "" {
		t.Errorf("-skip (-want +got):\n%s", diff)
	}
}

// TestTablesNameWhatIsThere: a package that was renamed must not keep its old privilege, nor lose it unseen.
func TestTablesNameWhatIsThere(t *testing.T) {
	t.Parallel()
	for _, rel := range slices.Concat(once, bound, alsoAlone) {
		mustBeThere(t, rel)
	}
	for rel, pattern := range withoutRace {
		mustBeThere(t, strings.TrimSuffix(rel, "/..."))
		if pattern == "" {
			t.Errorf("%s has no pattern", rel)
		}
	}
}

func mustBeThere(t *testing.T, rel string) {
	t.Helper()
	if fi, err := os.Stat(filepath.Join("../..", rel)); err != nil || !fi.IsDir() {
		t.Errorf("%s is no directory of the tree: %v", rel, err)
	}
}
