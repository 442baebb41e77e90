// SPDX-License-Identifier: Apache-2.0

package executortest

import (
	"context"
	"slices"
	"testing"

	"github.com/evoseal/containment/executor"
)

// Run runs every case as a subtest, each with an executor of its own from newExecutor, which gets the subtest: what it
// registers with Cleanup is closed at the end of that case. The cases that must be alone come first, one after the other,
// with supervisor-kill, which starts the calling test once more in a child process and kills that process in the middle
// of a run. All other subtests are parallel, and newExecutor is called by several of them at a time.
//
// Most cases wait most of the time, so the flag -parallel may well be several times the number of processors.
//
// There is no way to leave a case out. An executor that cannot hold a capability does not promise it; the case then
// demands that it refuses.
func Run(t *testing.T, newExecutor func(*testing.T) executor.Executor) {
	t.Helper()
	run(t, newExecutor, everyNeed)
}

// RunAgain is for another arrangement of an executor that has passed Run: on a host that lacks something, or with a
// setting that changes how some promises are kept. It runs the cases that need one of the capabilities that are kept
// otherwise there, or not at all, and if basics is set those that need none, too. It proves nothing about the others.
func RunAgain(
	t *testing.T, differs executor.Capability, basics bool, newExecutor func(*testing.T) executor.Executor,
) {
	t.Helper()
	run(t, newExecutor, touched(differs, basics))
}

// everyNeed and touched say which needs are asked for.
func everyNeed(executor.Capability) bool { return true }

func touched(differs executor.Capability, basics bool) func(executor.Capability) bool {
	return func(needs executor.Capability) bool { return needs&differs != 0 || needs == 0 && basics }
}

// casesWith are the cases whose needs are asked for.
func casesWith(wanted func(needs executor.Capability) bool) []Case {
	return slices.DeleteFunc(Cases(), func(c Case) bool { return !wanted(c.Needs) })
}

// run runs the cases whose needs are asked for.
func run(t *testing.T, newExecutor func(*testing.T) executor.Executor, wanted func(needs executor.Capability) bool) {
	t.Helper()
	if supervised(t, newExecutor) {
		return
	}
	all := casesWith(wanted)
	if len(all) == 0 {
		t.Fatal("executortest: there are no such cases for this system, so nothing was proven")
	}
	t.Cleanup(keepTemplate()) // the parallel subtests run when this function has returned
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			if !c.Alone {
				t.Parallel()
			}
			judge(t, c, newExecutor(t))
		})
	}
	if wanted(executor.TreeKilled) {
		t.Run(supervisorKill, func(t *testing.T) { judgeSupervisorKill(t, newExecutor) })
	}
}

// judge fails the subtest unless the executor holds the case, and records how it does.
func judge(t *testing.T, c Case, ex executor.Executor) {
	t.Helper()
	outcome, err := verdict(t.Context(), c, ex)
	if err != nil {
		t.Fatalf("%v\nwhy: %s", err, c.Why)
	}
	t.Attr("outcome", outcome)
}

// verdict takes the promise at its word: what is promised must be contained, what is not must be refused.
func verdict(ctx context.Context, c Case, ex executor.Executor) (outcome string, err error) {
	if missing := ex.Capabilities().Missing(c.Needs); missing != 0 {
		return "refused", refusal(c)(ctx, ex)
	}
	return "contained", c.Check(ctx, ex)
}
