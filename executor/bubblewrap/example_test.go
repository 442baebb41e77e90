// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bubblewrap_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/bubblewrap"
)

// A command that nobody has read gets a copy of a directory and a second.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	ex, err := bubblewrap.New(ctx, bubblewrap.Config{})
	if err != nil {
		log.Fatal(err) // says what the host lacks, and the way out
	}
	defer ex.Close()
	result, err := ex.Run(ctx, executor.Spec{
		Args:      []string{"sh", "-c", "echo started; sleep 60"},
		Workspace: dir,
		Limits:    executor.Limits{Wall: time.Second},
		Require:   executor.CleanEnv | executor.OutputBounded,
	})
	if err != nil {
		log.Fatal(err) // no verdict: nothing was run, or its end was not seen
	}
	fmt.Println(result.OK(), result.Cause)
	fmt.Print(result.Stdout)
	// Output:
	// false wall-timeout
	// started
}
