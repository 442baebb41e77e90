// SPDX-License-Identifier: Apache-2.0

//go:build !containerd

package executors

import (
	"context"

	"github.com/evoseal/containment/executor"
)

// openContainerd says how to get it: its client alone takes a minute or more to compile the first time.
func openContainerd(context.Context, Options) (Closer, error) {
	return nil, &executor.UnsupportedError{
		Executor: "containerd",
		Reason:   "this program was built without it",
		Fix:      "build it in, as root and with containerd running: go run -tags containerd ./examples/…",
	}
}
