// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd_test

import (
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd"
	"github.com/evoseal/containment/executor/executortest"
)

// The suite runs over boxes that are made for each run, and over boxes that waited. All cases of one share an executor:
// its own start, with a trial box, would take longer than most cases. One suite comes after the other, since some cases
// count what there is on the host.
func TestConformance(t *testing.T) {
	// Boxes that wait longer are replaced while "leak" looks: what it finds twice is nobody's.
	warm := containerd.Warm{Size: 1, MaxIdle: 2 * time.Second}
	for name, warm := range map[string]containerd.Warm{"cold": {}, "warm": warm} {
		t.Run(name, func(t *testing.T) {
			at := daemon(t)
			t.Setenv(siteMarker, at.String()) // a case executes the test once more
			config := containerd.Config{Root: containerd.Root{Reads: hostReads}, Warm: warm}
			ex := at.open(t, config)
			executortest.Run(t, func(*testing.T) executor.Executor { return ex })
			at.open(t, config) // the last case kills a host program; what that leaves is for the next one to remove
		})
	}
}
