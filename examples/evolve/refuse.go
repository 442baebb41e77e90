// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/evoseal/containment/examples/evolve/internal/report"
	"github.com/evoseal/containment/isolation"
)

// explain says why the boundary did not open: what was seen, what that requires, and the ways out.
func explain(err error) string {
	var deny *isolation.DenyError
	if !errors.As(err, &deny) {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nrefused: nothing was generated or run. What was seen on this host:\n")
	for _, fact := range slices.Sorted(maps.Keys(deny.Observed.Evidence)) {
		fmt.Fprintf(&b, "  %v: %s\n", fact, report.Clean(deny.Observed.Evidence[fact], 600))
	}
	if deny.Required >= isolation.TierContainer {
		b.WriteString("Tier 2 is a fresh container for each variant. It needs containerd, as root:\n" +
			"  CGO_ENABLED=0 go run -tags containerd ./examples/evolve -executor containerd …\n")
	}
	if deny.Decision.Approval {
		b.WriteString("A person has to approve, in a file that only that person can write: -approval FILE\n")
	}
	return b.String()
}
