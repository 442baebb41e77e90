// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// project is the path of the root module. The tables below hold paths below it, whichever module they lie in.
const project = "github.com/evoseal/containment"

// withoutRace names tests that the race detector makes several times slower and has nothing to look at in: their work is
// done by other processes, or they are one suite over and over. A pattern is that of -run and -skip; what it matches runs
// once more without the detector and not with it, and the rest of the package the other way round. "." is the whole
// package.
var withoutRace = map[string]string{
	".": ".",
	// One arrangement of the suite has the detector, and with it all that the executors share.
	"executor/rlimit":     "^TestConformance$/^(without_|on_disk|with_sockets)|^TestHostKilled$|^TestNothingIsLeft$",
	"executor/bubblewrap": "^TestConformance$|^TestHostKilled$|^TestNothingIsLeft$",
	// The client of containerd takes longer to compile than its tests to run.
	"executor/containerd":         ".",
	"executor/executortest":       ".",
	"executor/toolchain":          ".",
	"internal/deptest":            ".",
	"internal/gate":               ".",
	"rollback/internal/crashtest": ".",
	"rollback/rollbacktest":       "^Test(Mutants|Plain|Foils)$",
	// These start real executors; what goes on beside a run has tests with others.
	"isolation": "^TestVerify(Proves|Refuses|Survives|Remembers|TakesTurns|KnowsWrappers)|^TestReal|^TestHostileVariant$" +
		"|^TestClaim(Guards|NoHostSecrets)|^TestKilledWhileAVariantRuns$",
	"bench/...":    ".",
	"examples/...": ".",
}

// once are packages that ask nobody who they are: no file, process or system call of theirs goes by an identity. Where root
// makes the other passes, the ordinary user's leaves them out.
var once = []string{"executor", "internal/capture", "internal/deptest", "internal/gate"}

// bound are the packages that change the host or count what is on it: cgroups, processes of a run. Whatever is built from
// one of them is tested alone.
var bound = []string{"internal/cgroup", "internal/supervise"}

// alsoAlone are tested alone for a reason that no import shows: README's commands start examples, and reserved uids are
// the machine's.
var alsoAlone = []string{".", "internal/lease"}

// pkg is one package of the tree.
type pkg struct {
	path  string // as imported
	rel   string // below project
	alone bool   // its tests must not meet those of another such package
}

// listPackages returns the packages of a module. What does not compile is among them, and fails as a test.
func listPackages(ctx context.Context, dir string) ([]pkg, error) {
	const format = `{{.ImportPath}} {{join .Deps " "}}`
	cmd := exec.CommandContext(ctx, "go", "list", "-e", "-test", "-f", format, "./...")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w", dir, err)
	}
	found := map[string]pkg{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) == 0 || len(words) > 1 && strings.HasPrefix(words[1], "[") {
			continue // "path [path.test]" is the variant for a test; "path.test" has it among its dependencies
		}
		path := strings.TrimSuffix(words[0], ".test")
		p := pkg{path: path, rel: cmp.Or(strings.TrimPrefix(strings.TrimPrefix(path, project), "/"), ".")}
		p.alone = found[path].alone || slices.Contains(alsoAlone, p.rel) || slices.ContainsFunc(words, isBound)
		found[path] = p
	}
	packages := slices.Collect(maps.Values(found))
	slices.SortFunc(packages, func(a, b pkg) int { return strings.Compare(a.path, b.path) })
	return packages, nil
}

func isBound(dependency string) bool {
	rel, ours := strings.CutPrefix(dependency, project+"/")
	return ours && slices.Contains(bound, rel)
}

// slow returns the pattern of the tests that run without the race detector, or "".
func (p pkg) slow() string {
	if pattern, ok := withoutRace[p.rel]; ok {
		return pattern
	}
	for key, pattern := range withoutRace {
		if above, whole := strings.CutSuffix(key, "/..."); whole && strings.HasPrefix(p.rel, above+"/") {
			return pattern
		}
	}
	return ""
}

// job is one call of go test.
type job struct {
	flags    []string
	packages []string
}

// part is the part of the tests that a pass makes.
type part func(packages []pkg) []job

// raced makes what has the race detector.
func raced(packages []pkg) []job {
	jobs := []job{{flags: []string{"-race"}}}
	for _, p := range packages {
		switch pattern := p.slow(); pattern {
		case ".":
		case "":
			jobs[0].packages = append(jobs[0].packages, p.path)
		default:
			jobs = append(jobs, job{[]string{"-race", "-skip=" + pattern}, []string{p.path}})
		}
	}
	return jobs
}

// unraced makes the rest of it.
func unraced(packages []pkg) []job {
	jobs := []job{{}}
	for _, p := range packages {
		switch pattern := p.slow(); pattern {
		case "":
		case ".":
			jobs[0].packages = append(jobs[0].packages, p.path)
		default:
			jobs = append(jobs, job{[]string{"-run=" + pattern}, []string{p.path}})
		}
	}
	return jobs
}

// again makes everything that may depend on who the caller is.
func again(packages []pkg) []job {
	var j job
	for _, p := range packages {
		if !slices.Contains(once, p.rel) {
			j.packages = append(j.packages, p.path)
		}
	}
	return []job{j}
}
