// SPDX-License-Identifier: Apache-2.0

package executortest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/evoseal/containment/executor"
)

// Benchmark measures what a run costs beside its payload: /bin/true over a workspace of one small file, one run after
// the other and as many at once as there are processors. Both report runs/s.
func Benchmark(b *testing.B, newExecutor func(*testing.B) executor.Executor) {
	b.Run("sequential", func(b *testing.B) {
		ex, spec := newExecutor(b), benchSpec(b)
		for b.Loop() {
			benchRun(b.Context(), b, ex, spec)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	})
	b.Run("parallel", func(b *testing.B) {
		ex, spec := newExecutor(b), benchSpec(b)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				benchRun(b.Context(), b, ex, spec)
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	})
}

// benchSpec asks for the least that a run can do, so that the figure is the executor and not the payload.
func benchSpec(b *testing.B) executor.Spec {
	b.Helper()
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "input.txt"), []byte("input\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	return executor.Spec{Args: []string{"/bin/true"}, Workspace: dir}
}

// benchRun fails the benchmark unless the run was a success: a fast error is not a figure.
func benchRun(ctx context.Context, b *testing.B, ex executor.Executor, spec executor.Spec) {
	res, err := ex.Run(ctx, spec)
	if err != nil || !res.OK() {
		b.Errorf("/bin/true did not succeed: %+v, %v", res, err)
	}
}
