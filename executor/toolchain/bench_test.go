// SPDX-License-Identifier: Apache-2.0

//go:build linux

package toolchain_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
)

// BenchmarkGoTest runs the tests of a small module outside and inside, one after the other in the same loop, and
// reports the medians. Each time the module has a new directory, as a variant has; everything else is warm on both
// sides. "again" is the run outside once more in the same directory, which then compiles nothing at all.
func BenchmarkGoTest(b *testing.B) {
	tc, files := seeded(b), sample(b)
	for _, x := range executors {
		b.Run(x.name, func(b *testing.B) {
			ex := x.make(b, false)
			var outside, again, within []time.Duration
			for b.Loop() {
				workspace := write(b, dir(b), files)
				outside = append(outside, goTestOutside(b, workspace))
				again = append(again, goTestOutside(b, workspace))
				spec := executor.Spec{Args: goTest, Workspace: workspace, Limits: executor.Limits{CPUs: float64(runtime.NumCPU())}}
				start := time.Now()
				if err := tc.Apply(&spec); err != nil {
					b.Fatal(err)
				}
				r, err := ex.Run(b.Context(), spec)
				if err != nil {
					b.Fatal(err)
				}
				within = append(within, time.Since(start))
				passed(b, r)
			}
			o, a, w := median(outside), median(again), median(within)
			b.ReportMetric(float64(w.Microseconds())/1000, "inside-ms")
			b.ReportMetric(float64(o.Microseconds())/1000, "outside-ms")
			b.ReportMetric(float64(a.Microseconds())/1000, "again-ms")
			b.ReportMetric(float64(w)/float64(o), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// goTest does not take a result from the cache.
var goTest = []string{"go", "test", "-count=1", "./..."}

// goTestOutside has the environment of a run but for the seed, and a cache and a home that stay.
func goTestOutside(b *testing.B, workspace string) time.Duration {
	b.Helper()
	env := maps.Clone(shared.tc.Env)
	delete(env, "GOCACHEPROG")
	maps.Copy(env, map[string]string{
		"GOCACHE": shared.config.Seed.BuildCache, "HOME": filepath.Join(shared.config.Seed.Dir, "host"),
		"TMPDIR": os.TempDir(), "PATH": executor.DefaultPath, "XDG_CONFIG_HOME": "none",
	})
	cmd := exec.Command(shared.tc.Program, goTest[1:]...)
	cmd.Dir = workspace
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, strings.TrimSpace(string(out)))
	}
	return time.Since(start)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
