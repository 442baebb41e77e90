// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd_test

import (
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd"
	"github.com/evoseal/containment/executor/executortest"
)

// The suite runs over boxes that are made for each run, and over boxes that waited.
func TestConformance(t *testing.T) {
	for name, warm := range map[string]containerd.Warm{"cold": {}, "warm": {Size: 2}} {
		t.Run(name, func(t *testing.T) {
			socket := daemon(t)
			newExecutor := func(t *testing.T) *containerd.Executor {
				return open(t, socket, containerd.Config{Root: containerd.Root{Reads: hostReads}, Warm: warm})
			}
			executortest.Run(t, func(t *testing.T) executor.Executor { return newExecutor(t) })
			newExecutor(t) // the last case kills a host program; what that leaves is for the next one to remove
		})
	}
}
