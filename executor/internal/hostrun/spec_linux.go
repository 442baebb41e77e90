// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/evoseal/containment/executor"
)

// Admit decides whether a run may start at all, as far as that is the same for every executor. Nothing has been made when
// it refuses.
func (h *Host) Admit(ctx context.Context, spec executor.Spec, caps executor.Capability, tier string) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	if missing := caps.Missing(spec.Required()); missing != 0 {
		return &executor.UnsupportedError{
			Executor: h.Name, Missing: missing,
			Reason: "the run requires what " + tier + " does not enforce for this caller on this host",
			Fix:    "use an executor of a higher tier",
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("executor: not started: %w", context.Cause(ctx))
	}
	return nil
}

// Resolve follows links as far as they lead somewhere.
func Resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// Overlaps refuses a workspace whose original lies in a directory that every run may read, links resolved: what is hidden
// in the copy would be open there.
func (h *Host) Overlaps(workspace string, readable []string) error {
	dir, err := filepath.Abs(workspace)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return &executor.SetupError{Step: "workspace", Err: err}
	}
	for _, p := range readable {
		rel, err := filepath.Rel(p, dir)
		if err == nil && filepath.IsLocal(rel) {
			return &executor.UnsupportedError{
				Executor: h.Name, Reason: fmt.Sprintf("workspace %s lies in %s, which every run may read", workspace, p),
				Fix: "move the workspace, or set Config.Reads without that directory",
			}
		}
	}
	return nil
}

// Programs returns the paths at which the payload's process looks for its program, in its own view.
func Programs(spec executor.Spec) []string {
	program := spec.Args[0]
	if strings.Contains(program, "/") {
		return []string{program}
	}
	search, ok := spec.Env["PATH"]
	if !ok {
		search = executor.DefaultPath
	}
	var list []string
	for _, dir := range filepath.SplitList(search) {
		if dir == "" {
			dir = "." // as execvp reads an empty element
		}
		list = append(list, dir+"/"+program)
	}
	return list
}
