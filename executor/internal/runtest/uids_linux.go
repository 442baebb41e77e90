// SPDX-License-Identifier: Apache-2.0

package runtest

import (
	"sync"
	"testing"

	"github.com/evoseal/containment/executor"
)

// FewUIDs is the first of a few uids that are for [TwoStates] alone. They are enough for two test binaries.
const FewUIDs = 64_900

// TwoStates has executors with different state directories and the same few uids work at the same time. Each run leaves a
// process behind, for which everything of its uid is killed at the end: a run that shared the uid would be killed too, or
// would find it busy.
func TwoStates(t *testing.T, open Open) {
	t.Helper()
	const rounds, each = 8, 4
	spec := executor.Spec{Args: []string{"sh", "-c", "sleep 300 & sleep 0.02"}, Workspace: t.TempDir()}
	var executors []Executor
	for range 2 {
		ex, err := open(t.Context(), StateDir(t))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := ex.Close(); err != nil {
				t.Error(err)
			}
		}()
		executors = append(executors, ex)
	}
	var wg sync.WaitGroup
	for range each {
		for _, ex := range executors {
			wg.Go(func() {
				for range rounds {
					if result, err := ex.Run(t.Context(), spec); err != nil || !result.OK() {
						t.Errorf("%v, %v", result, err)
					}
				}
			})
		}
	}
	wg.Wait()
}
