// SPDX-License-Identifier: Apache-2.0

package executortest_test

import (
	"fmt"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/executortest"
	"github.com/evoseal/containment/executor/rlimit"
)

// The whole of a conformance test, in a _test.go file beside the executor. It is a test function like any other.
func Example() {
	TestConformance := func(t *testing.T) {
		executortest.Run(t, func(t *testing.T) executor.Executor {
			ex, err := rlimit.New(t.Context(), rlimit.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = ex.Close() })
			return ex
		})
	}
	_ = TestConformance
}

// A program that wants a proof before it trusts an executor runs the checks of the capabilities that it needs, without a
// test. A check that is not nil is no proof, whichever error it is.
func ExampleCases() {
	need := executor.NetworkOff | executor.HostFilesHidden
	proofs := 0
	for _, c := range executortest.Cases() {
		if c.Needs != 0 && need.Has(c.Needs) {
			proofs++ // here: err := c.Check(ctx, ex)
		}
	}
	fmt.Println(proofs >= 10)
	// Output: true
}
