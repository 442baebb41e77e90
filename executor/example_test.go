// SPDX-License-Identifier: Apache-2.0

package executor_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evoseal/containment/executor"
)

// timedOut stands for a real executor, such as the one of package rlimit. It shows what each of them does before it
// starts anything.
type timedOut struct{}

func (timedOut) Capabilities() executor.Capability { return executor.CleanEnv | executor.OutputBounded }

func (x timedOut) Run(_ context.Context, spec executor.Spec) (*executor.Result, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if missing := x.Capabilities().Missing(spec.Required()); missing != 0 {
		return nil, &executor.UnsupportedError{Executor: "example", Missing: missing, Reason: "it only pretends"}
	}
	return &executor.Result{
		Cause: executor.CauseWallTimeout, ExitCode: -1, Detail: "wall limit of " + spec.Limits.WithDefaults().Wall.String(),
		Stdout: executor.Output{Head: []byte("compiling"), Total: 9},
	}, nil
}

// How a caller tells a verdict from the lack of one.
func ExampleExecutor() {
	var ex executor.Executor = timedOut{}
	spec := executor.Spec{
		Args:      []string{"go", "test", "./..."},
		Workspace: ".",
		Limits:    executor.Limits{Wall: 5 * time.Second},
	}
	for _, require := range []executor.Capability{executor.CleanEnv, executor.CleanEnv | executor.NetworkOff} {
		spec.Require = require
		result, err := ex.Run(context.Background(), spec)
		switch {
		case errors.Is(err, executor.ErrUnsupported):
			fmt.Println("refused:", err)
		case err != nil:
			fmt.Println("no verdict:", err)
		case result.OK():
			fmt.Println("passed")
		default:
			fmt.Printf("%v (%s) after printing %q\n", result.Cause, result.Detail, result.Stdout)
		}
	}
	// Output:
	// wall-timeout (wall limit of 5s) after printing "compiling"
	// refused: example: not supported here: it only pretends (missing NetworkOff)
}

// Every mistake is reported at once, by field.
func ExampleSpec_Validate() {
	spec := executor.Spec{
		Workspace: ".",
		Env:       map[string]string{"A=B": "x"},
		Hidden:    []string{"../secret"},
		Limits:    executor.Limits{Memory: -1},
	}
	if e, ok := errors.AsType[*executor.SpecError](spec.Validate()); ok {
		for _, fault := range e.Faults {
			fmt.Println(fault)
		}
	}
	// Output:
	// Args: must name a program
	// Env["A=B"]: a name must not contain '='
	// Hidden[0]: "../secret" must not contain ".."
	// Limits.Memory: -1 must not be negative; 0 means the default
}
