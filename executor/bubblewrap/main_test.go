// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bubblewrap_test

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/evoseal/containment/executor/internal/runtest"
)

// TestMain turns the re-executed test binary into a host program: one in a condition of its own, one that keeps runs under
// way until it is killed, or the probe of the leak table.
func TestMain(m *testing.M) {
	if condition := os.Getenv(hostMarker); condition != "" {
		asHost(condition)
	}
	runtest.Main(open)
	if len(os.Args) == 2 && os.Args[1] == probeMarker {
		probe()
	}
	os.Exit(m.Run())
}

func testContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 30*time.Second)
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
