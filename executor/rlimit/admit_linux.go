// SPDX-License-Identifier: Apache-2.0

package rlimit

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/evoseal/containment/executor"
)

// admit decides whether the run may start at all. Nothing has been made when it refuses.
func (e *Executor) admit(ctx context.Context, spec executor.Spec) error {
	if err := e.host.Admit(ctx, spec, e.caps, "tier 1"); err != nil {
		return err
	}
	if e.landlock != nil {
		if err := e.host.Overlaps(spec.Workspace, e.landlock.paths); err != nil {
			return err
		}
	}
	for _, m := range spec.Mounts {
		if m.CopyOnWrite || (m.Target != "" && filepath.Clean(m.Target) != filepath.Clean(m.Source)) {
			return e.host.Unsupported(fmt.Sprintf("mount %s: tier 1 has no mount namespace", m.Source),
				"leave Target empty and CopyOnWrite unset, or use an executor of a higher tier", nil)
		}
	}
	return nil
}
