// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evoseal/containment/examples/evolve/internal/report"
	"github.com/evoseal/containment/isolation"
)

// explain says why the boundary did not open: what was seen, what that requires, and the ways out.
func explain(err error, all []isolation.Candidate, dir string) string {
	var deny *isolation.DenyError
	if !errors.As(err, &deny) {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nrefused: nothing was generated or run. What was seen on this host:\n")
	if len(deny.Observed.Evidence) == 0 {
		b.WriteString("  nothing of note\n")
	}
	for _, fact := range slices.Sorted(maps.Keys(deny.Observed.Evidence)) {
		fmt.Fprintf(&b, "  %v: %s\n", fact, report.Clean(deny.Observed.Evidence[fact], 600))
	}
	if deny.Required >= isolation.TierContainer && !slices.ContainsFunc(all, isContainer) {
		b.WriteString("Tier 2 is a fresh container for each variant. It needs containerd, as root:\n" +
			"  CGO_ENABLED=0 go run -tags containerd ./examples/evolve -executor containerd …\n" +
			"On a system with an old runc that is meant to be used all the same: -allow-old-runtime\n")
	}
	if deny.Decision.Approval {
		fmt.Fprintf(&b, "A person has to approve. Fill in approver and reason, and keep it where this user cannot write (for root:\n"+
			"where nobody else can):\n%s\nThen go on with: … -resume -state %s -approval FILE\n", form(deny), dir)
	}
	return b.String()
}

func isContainer(c isolation.Candidate) bool { return c.Name == "containerd" && c.Executor != nil }

// form is an approval that holds for this run and nobody has given: approver and reason are empty.
func form(deny *isolation.DenyError) string {
	now := time.Now().UTC().Truncate(time.Second)
	text, err := json.MarshalIndent(isolation.Approval{
		ModelHash: deny.Decision.ModelHash, RunID: runID, Created: now, Expires: now.Add(8 * time.Hour),
	}, "", "\t")
	if err != nil {
		return err.Error() // of strings and times there is none
	}
	return string(text)
}
