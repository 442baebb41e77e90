// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rlimit

import (
	"context"

	"github.com/evoseal/containment/executor/internal/hostrun"
)

// Without is like New on a host that lacks some of what this one has.
func Without(ctx context.Context, c Config, cgroups, landlock, mounts bool) (*Executor, error) {
	return newExecutor(ctx, c, hostrun.Lacks{Cgroups: cgroups, Mounts: mounts}, landlock)
}
