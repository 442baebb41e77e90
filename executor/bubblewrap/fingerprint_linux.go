// SPDX-License-Identifier: Apache-2.0

package bubblewrap

import (
	"fmt"

	"github.com/evoseal/containment/executor/internal/hostrun"
)

// Fingerprint tells this executor from one that would run differently, by the program that it starts, as it is on disk
// now, the filter, what a run sees, and what the host enforces: see [executor.Fingerprinter]. It is "" if the program
// cannot be read.
func (e *Executor) Fingerprint() string {
	program, err := hostrun.FileDigest(e.program)
	if err != nil {
		return ""
	}
	var reads []string
	for _, r := range e.view.reads {
		reads = append(reads, fmt.Sprintf("%s>%s", r.path, r.link))
	}
	return e.host.Fingerprint("program", fmt.Sprintf("%s@sha256:%s", e.program, program),
		"filter", "sha256:"+hostrun.Digest(e.filter), "view", fmt.Sprintf("%q", e.view.dir),
		"reads", fmt.Sprintf("%q", reads), "masks", fmt.Sprintf("%q", e.masks))
}
