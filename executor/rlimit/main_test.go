// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rlimit_test

import (
	"os"
	"testing"

	"github.com/evoseal/containment/executor/internal/runtest"
)

// TestMain turns the re-executed test binary into a host program that keeps runs under way until it is killed.
func TestMain(m *testing.M) {
	runtest.Main(open)
	os.Exit(m.Run())
}
