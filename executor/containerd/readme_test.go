// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd_test

import (
	"testing"

	"github.com/evoseal/containment/executor/containerd"
	"github.com/evoseal/containment/executor/internal/runtest"
)

// TestReadme: the table in README.md is about a host like the one that is needed here.
func TestReadme(t *testing.T) {
	t.Parallel()
	ex := daemon(t).open(t, containerd.Config{})
	runtest.Readme(t, "`containerd`", ex.Capabilities())
}
