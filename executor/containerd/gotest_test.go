// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd"
	"github.com/evoseal/containment/executor/internal/runtest"
	"github.com/evoseal/containment/executor/toolchain"
	"github.com/evoseal/containment/internal/testenv"
)

// realModule is a published module with tests and a dependency. Its source is in the module cache of whoever builds
// us.
const realModule = "github.com/hashicorp/go-multierror"

// goTests run the tests of a module inside and outside, over the same read-only seed.
type goTests struct {
	chain  *toolchain.Toolchain
	source string // the module as it was published
	dir    string // for workspaces, outside of /dev, which a box has for itself
}

func newGoTests(t testing.TB) goTests {
	t.Helper()
	needDaemon(t)
	testenv.Need(t, "go")
	testenv.Need(t, "go-caches")
	cache, build := goEnv(t, "GOMODCACHE"), goEnv(t, "GOCACHE")
	found, err := filepath.Glob(filepath.Join(cache, realModule+"@*"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no %s in %s: %v", realModule, cache, err)
	}
	dir, err := os.MkdirTemp("", "ctr-go-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A seed is nobody's to write to.
		if out, err := exec.Command("chmod", "-R", "u+w", dir).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	g := goTests{source: found[len(found)-1], dir: dir}
	g.chain, err = toolchain.Go(t.Context(), toolchain.GoConfig{Seed: toolchain.GoSeed{
		Dir: filepath.Join(dir, "seeds"), Module: g.workspace(t), BuildCache: build, ModCache: cache,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func goEnv(t testing.TB, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// workspace is a new copy of the module, as every variant is one.
func (g goTests) workspace(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(g.dir, "workspace-")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.CopyFS(dir, os.DirFS(g.source)), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// spec lets a run have as much of the machine as a program outside.
func (g goTests) spec(t testing.TB, args ...string) executor.Spec {
	t.Helper()
	spec := executor.Spec{
		Args: append([]string{"go", "test", "-count=1"}, args...), Workspace: g.workspace(t), Require: executor.NetworkOff,
		Limits: executor.Limits{CPUs: float64(runtime.NumCPU()), Memory: 2 << 30, Disk: 1 << 30},
	}
	if err := g.chain.Apply(&spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// outside runs the same in the workspace itself, with the environment of a run and no limits.
func (g goTests) outside(t testing.TB, spec executor.Spec) error {
	t.Helper()
	cmd := exec.Command(g.chain.Program, spec.Args[1:]...)
	cmd.Dir, cmd.Env = spec.Workspace, spec.Environ(filepath.Join(g.dir, "home"), os.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return errors.New(err.Error() + ": " + string(out))
	}
	return nil
}

var compiled = regexp.MustCompile(`(?m)/compile .* -p (\S+) `)

// The tests of a real module pass inside, and nothing is compiled for them but the module: neither the standard
// library nor what it imports.
func TestGoTest(t *testing.T) {
	t.Parallel()
	g := newGoTests(t)
	r := mustExit(t, daemon(t).open(t, containerd.Config{}), g.spec(t, "-x", "./..."), 0)
	if !strings.Contains(r.Stdout.String(), "ok  \t"+realModule) {
		t.Errorf("%s", r.Stdout)
	}
	var list []string
	for _, m := range compiled.FindAllSubmatch(r.Stderr.Bytes(), -1) {
		list = append(list, string(m[1]))
	}
	foreign := func(p string) bool { return p != "main" && !strings.HasPrefix(p, realModule) }
	if len(list) == 0 || slices.ContainsFunc(list, foreign) {
		t.Errorf("compiled inside: %q, want the module's own packages", list)
	}
}

// BenchmarkGoTest runs the tests of a real module in a cold box, in one that waited, and outside, in the same loop,
// each time in a new copy, and reports the medians. "bound" is how much of 1.5 times the time outside and 150 ms a
// cold run takes.
func BenchmarkGoTest(b *testing.B) {
	g := newGoTests(b)
	cold, warm := newSubject(b, containerd.Warm{}), newSubject(b, containerd.Warm{Size: 1})
	var took [3][]time.Duration
	for b.Loop() {
		for i, run := range []func(executor.Spec) error{
			func(s executor.Spec) error { return g.outside(b, s) },
			func(s executor.Spec) error { return passed(cold.ex.Run(b.Context(), s)) },
			func(s executor.Spec) error { return passed(warm.ex.Run(b.Context(), s)) },
		} {
			spec := g.spec(b, "./...")
			start := time.Now()
			if err := run(spec); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(start))
			time.Sleep(500 * time.Millisecond) // for the filler
		}
	}
	out, in, ready := runtest.Median(took[0]), runtest.Median(took[1]), runtest.Median(took[2])
	b.ReportMetric(float64(out.Microseconds())/1000, "outside-ms")
	b.ReportMetric(float64(in.Microseconds())/1000, "cold-ms")
	b.ReportMetric(float64(ready.Microseconds())/1000, "warm-ms")
	b.ReportMetric(float64(in)/(1.5*float64(out)+float64(150*time.Millisecond)), "bound")
	b.ReportMetric(0, "ns/op")
}

func passed(r *executor.Result, err error) error {
	if err == nil && !r.OK() {
		err = errors.New(r.Detail + ": " + r.Stdout.String() + r.Stderr.String())
	}
	return err
}
