// SPDX-License-Identifier: Apache-2.0

package bubblewrap

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/scratch"
)

// taken says why nothing of the host can be seen at a path, or "".
func taken(target string) string {
	for _, own := range []string{"/etc", "/proc", "/dev", "/var/tmp", TempDir, Home, Workspace} {
		if within(target, own) {
			return "would hide the run's own " + own
		}
	}
	for _, own := range []string{"/proc", "/dev"} {
		if within(own, target) {
			return "lies in " + own + ", which the kernel or the executor fills"
		}
	}
	return ""
}

// mount is a declared mount.
type mount struct {
	executor.Mount        // Target is clean and not empty
	dir            bool   // the source is a directory
	copied         string // where its copy is, if it is CopyOnWrite
}

// targets returns the declared mounts with their places, or an error that names one that cannot be had.
func targets(spec executor.Spec) ([]mount, error) {
	var list []mount
	for _, m := range spec.Mounts {
		if m.Target == "" {
			m.Target = m.Source
		}
		m.Target = path.Clean(m.Target)
		if why := taken(m.Target); why != "" {
			return nil, fmt.Errorf("mount %s: the target %s %s", m.Source, m.Target, why)
		}
		list = append(list, mount{Mount: m})
	}
	// What is above must be there before what is below it.
	slices.SortFunc(list, func(a, b mount) int { return strings.Compare(a.Target, b.Target) })
	return list, nil
}

// lookAtMounts demands that the sources are there before anything starts.
func (r *run) lookAtMounts(context.Context) error {
	for i := range r.mounts {
		m := &r.mounts[i]
		fi, err := os.Stat(m.Source)
		switch {
		case err != nil:
			return err
		case m.CopyOnWrite && !fi.IsDir():
			return fmt.Errorf("%s: CopyOnWrite needs a directory", m.Source)
		}
		m.dir = fi.IsDir()
		if m.CopyOnWrite {
			r.Copies++
		}
	}
	return nil
}

// copyMounts makes the private copies of what the run may change.
func (r *run) copyMounts(ctx context.Context) error {
	for i := range r.mounts {
		m := &r.mounts[i]
		if !m.CopyOnWrite {
			continue
		}
		m.copied = filepath.Join(r.Dir, "mount-"+strconv.Itoa(i))
		if err := os.Mkdir(m.copied, 0o700); err != nil {
			return err
		}
		o := r.CopyOptions()
		o.OmitNames = nil // what is declared is declared
		if _, err := scratch.Copy(ctx, m.Source, m.copied, o); err != nil {
			return fmt.Errorf("copy of %s: %w", m.Source, err)
		}
	}
	return nil
}

// inWorkspace returns the path of a mount below the workspace, if it is there.
func (m mount) inWorkspace() (rel string, ok bool) {
	return strings.CutPrefix(m.Target, Workspace+"/")
}
