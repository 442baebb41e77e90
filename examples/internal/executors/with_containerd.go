// SPDX-License-Identifier: Apache-2.0

//go:build containerd

package executors

import (
	"context"

	"github.com/evoseal/containment/executor/containerd"
)

// openContainerd uses the daemon that runs already, or starts one of its own that ends with the executor.
func openContainerd(ctx context.Context, o Options) (Closer, error) {
	return containerd.New(ctx, containerd.Config{
		Managed: true, DangerAllowOldRuntime: o.AllowOldRuntime, Logger: o.Logger,
	})
}
