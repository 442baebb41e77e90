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
		Fix:      "as root, with containerd installed: CGO_ENABLED=0 go run -tags containerd ./examples/…",
	}
}
