// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/evoseal/containment/runaway"
)

// Many open a new run with one store at the same moment: one gets it. Two would count each for itself in one journal.
func TestOpensAtOnce(t *testing.T) {
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

// A store that is in use stays in use: a second Open of the same value must not close it for the first, and must not
// leave two governors that count for themselves.
func TestSecondOpenOfOneStore(t *testing.T) {
	t.Parallel()
	for name, store := range stores(t) {
		for what, limits := range map[string]runaway.Limits{
			"good limits": {MaxIterations: 4}, "bad limits": {MaxIterations: -1},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				l := runaway.Limits{MaxIterations: 4}
				id := strings.ReplaceAll(what, " ", "-")
				s := store()
				if name == "memory" {
					s = runaway.UnsafeMemStore()
				}
				first, err := runaway.Open(t.Context(), id, l, s, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = first.Close(context.Background()) }()
				if g, err := runaway.Open(t.Context(), id, limits, s, nil); err == nil {
					t.Error("the store was opened a second time")
					_ = g.Close(t.Context())
				}
				begun := 0
				again, err := runaway.Open(t.Context(), id, l, s, nil)
				if !errors.Is(err, runaway.ErrStateLocked) {
					t.Errorf("the third opener: %v, want ErrStateLocked", err)
				}
				for _, g := range []*runaway.Governor{first, again} {
					for range 6 {
						if g == nil {
							break
						}
						it, err := g.Begin(t.Context(), runaway.Estimate{})
						if err != nil {
							break
						}
						begun++
						_ = it.End(runaway.Outcome{Kind: runaway.Accepted, Head: print(begun)})
					}
				}
				if begun != 4 {
					t.Errorf("%d iterations began, want the 4 of the first governor", begun)
				}
			})
		}
	}
}
