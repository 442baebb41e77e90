// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/evoseal/containment/runaway"
)

// Many open a new run with one store at the same moment: one gets it. Two would count each for itself in one journal.
func TestReviewOpensAtOnce(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(string) (runaway.Store, error){
		"memory": func(string) (runaway.Store, error) { return runaway.UnsafeMemStore(), nil },
		"file":   runaway.FileStore,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 10 {
				dir := filepath.Join(t.TempDir(), "state")
				s, err := store(dir)
				if err != nil {
					t.Fatal(err)
				}
				var begun, opened atomic.Int32
				var all sync.WaitGroup
				gate := make(chan struct{})
				for range 8 {
					all.Go(func() {
						<-gate
						g, err := runaway.Open(t.Context(), runID, runaway.Limits{MaxIterations: 3}, s, nil)
						if err != nil {
							return
						}
						opened.Add(1)
						for {
							it, err := g.Begin(t.Context(), runaway.Estimate{})
							if err != nil {
								break
							}
							begun.Add(1)
							_ = it.End(accepted)
						}
						_ = g.Close(context.Background())
					})
				}
				close(gate)
				all.Wait()
				if opened.Load() != 1 || begun.Load() != 3 {
					t.Errorf("%d opened it, and %d iterations began; want 1 and 3", opened.Load(), begun.Load())
				}
			}
		})
	}
}
