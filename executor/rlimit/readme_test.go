// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rlimit_test

import (
	"os"
	"testing"

	"github.com/evoseal/containment/executor/internal/runtest"
	"github.com/evoseal/containment/executor/rlimit"
	"github.com/evoseal/containment/internal/testenv"
)

// TestReadme: the table in README.md is about a host like the one that is needed here.
func TestReadme(t *testing.T) {
	testenv.Need(t, "landlock")
	column := "`rlimit`, user"
	if os.Getuid() == 0 {
		testenv.Need(t, "cgroup")
		testenv.Need(t, "tmpfs-mount")
		column = "`rlimit`, root"
	}
	ex, err := rlimit.New(t.Context(), rlimit.Config{StateDir: runtest.StateDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer ex.Close()
	runtest.Readme(t, column, ex.Capabilities())
}
