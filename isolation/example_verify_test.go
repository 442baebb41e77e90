// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
)

// boastful promises everything and can do nothing.
type boastful struct{}

func (boastful) Capabilities() executor.Capability { return executor.AllCapabilities }

func (boastful) Run(context.Context, executor.Spec) (*executor.Result, error) {
	return &executor.Result{Cause: executor.CauseExited}, nil
}

// A promise is worth what an attack has shown. The report is the evidence, whatever the outcome; Boundary does all this by
// itself.
func ExampleVerify() {
	ctx := context.Background()
	report, err := isolation.Verify(ctx, boastful{}, &isolation.VerifyOptions{Needs: isolation.TierConfined.Needs()})
	fmt.Println(errors.Is(err, isolation.ErrUnproven), report.Proven)
	// Output: true none
}
