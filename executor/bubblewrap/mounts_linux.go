// SPDX-License-Identifier: Apache-2.0

package bubblewrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

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
	return r.nested()
}

// inWorkspace returns the path of a mount below the workspace, if it is there.
func (m mount) inWorkspace() (rel string, ok bool) {
	return strings.CutPrefix(m.Target, Workspace+"/")
}

// place is where the host has what is mounted.
func (m mount) place() string { return cmp.Or(m.copied, m.Source) }

// above returns the declared mount in which a path of the run lies, the innermost one, and the path in there.
func (r *run) above(target string) (in *mount, rest string) {
	for i, m := range slices.Backward(r.mounts) { // what is below comes later
		if rest, ok := strings.CutPrefix(target, m.Target+"/"); ok {
			return &r.mounts[i], rest
		}
	}
	return nil, ""
}

// isMount reports whether something is mounted just on a path of the workspace.
func (r *run) isMount(p string) bool {
	return slices.ContainsFunc(r.mounts, func(m mount) bool { return m.Target == path.Join(Workspace, p) })
}

// lookInside is look for what a run sees at a path of the workspace, declared mounts included.
func (r *run) lookInside(root int, p string) (dir bool, err error) {
	target := path.Join(Workspace, p)
	for _, m := range r.mounts {
		if m.Target == target {
			return m.dir, nil
		}
	}
	if in, rest := r.above(target); in != nil {
		return lookIn(in.place(), rest)
	}
	return look(root, p)
}

// lookIn is look for a path below a directory, links on the way to which may be followed: it was declared.
func lookIn(dir, p string) (bool, error) {
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(root)
	return look(root, p)
}

// nested refuses a mount on the way to which another one has a link: bubblewrap would follow it, also out of the view, and
// make the mount point there, on the host.
func (r *run) nested() error {
	for _, m := range r.mounts {
		in, rest := r.above(m.Target)
		if in == nil {
			continue
		}
		if _, err := lookIn(in.place(), rest); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("mount %s in %s: %w", m.Source, in.Source, err)
		}
	}
	return nil
}
