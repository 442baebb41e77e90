// SPDX-License-Identifier: Apache-2.0

package containerd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd"
)

func Example() {
	ctx := context.Background()
	ex, err := containerd.New(ctx, containerd.Config{
		Root: containerd.Root{Image: "registry.example/toolchain@sha256:" +
			"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
		Warm: containerd.Warm{Size: 2},
	})
	if errors.Is(err, executor.ErrUnsupported) {
		fmt.Fprintln(os.Stderr, err) // what is missing, and what would change that
		fmt.Println("no verdict without a box")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ex.Close()
	result, err := ex.Run(ctx, executor.Spec{
		Args:      []string{"go", "test", "./..."},
		Workspace: "/srv/variants/17",
		Limits:    executor.Limits{Wall: time.Minute, Memory: 1 << 30},
		Require:   executor.FreshPerRun | executor.MinimalRoot | executor.MemoryBounded,
	})
	if err != nil {
		fmt.Println("no verdict:", err)
		return
	}
	fmt.Println(result.Cause, result.OK())
	// Output: no verdict without a box
}
