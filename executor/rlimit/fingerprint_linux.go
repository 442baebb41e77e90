// SPDX-License-Identifier: Apache-2.0

package rlimit

import (
	"fmt"

	"github.com/evoseal/containment/executor/internal/hostrun"
)

// Fingerprint tells this executor from one that would run differently, by the filters, the version of Landlock and what
// it lets a run read, and what the host enforces: see [executor.Fingerprinter].
func (e *Executor) Fingerprint() string {
	abi, reads := 0, []string(nil)
	if e.landlock != nil {
		abi, reads = e.landlock.abi, e.landlock.paths
	}
	return e.host.Fingerprint("filter", "sha256:"+hostrun.Digest(e.filter, e.strict), "landlock", abi,
		"reads", fmt.Sprintf("%q", reads), "sockets", e.config.Sockets, "path-metadata", e.config.PathMetadata)
}
