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
	if err := spec.Validate(); err != nil {
		return err
	}
	if missing := e.caps.Missing(spec.Required()); missing != 0 {
		return &executor.UnsupportedError{
			Executor: name, Missing: missing, Reason: "the run requires what tier 1 does not enforce for this caller on this host",
			Fix: "use an executor of a higher tier",
		}
	}
	if err := e.overlaps(spec.Workspace); err != nil {
		return err
	}
	for _, m := range spec.Mounts {
		if m.CopyOnWrite || (m.Target != "" && filepath.Clean(m.Target) != filepath.Clean(m.Source)) {
			return &executor.UnsupportedError{
				Executor: name, Reason: fmt.Sprintf("mount %s: tier 1 has no mount namespace", m.Source),
				Fix: "leave Target empty and CopyOnWrite unset, or use an executor of a higher tier",
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("executor: not started: %w", context.Cause(ctx))
	}
	return nil
}

// overlaps refuses a workspace whose original every run can read: what is hidden in the copy would be open there.
func (e *Executor) overlaps(workspace string) error {
	if e.landlock == nil {
		return nil
	}
	dir, err := filepath.Abs(workspace)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return &executor.SetupError{Step: "workspace", Err: err}
	}
	for _, p := range e.landlock.reads {
		rel, err := filepath.Rel(p.file.Name(), dir)
		if err == nil && filepath.IsLocal(rel) {
			return &executor.UnsupportedError{
				Executor: name, Reason: fmt.Sprintf("workspace %s lies in %s, which every run may read", workspace, p.file.Name()),
				Fix: "move the workspace, or set Config.Reads without that directory",
			}
		}
	}
	return nil
}
