// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/cgroup"
	"github.com/evoseal/containment/internal/scratch"
)

// mountFlags: nothing on a run's file system is a device or changes an id, whoever executes it.
const mountFlags = unix.MS_NOSUID | unix.MS_NODEV

// Work is the directory in a run's own that holds the copy of the workspace.
const Work = "work"

// Workspace is the copy of the workspace.
func (r *Run) Workspace() string { return filepath.Join(r.Dir, Work) }

// MakeScratch makes the run's directory, with the workspace and the directories named in it. Only these belong to the
// run's uid, so it can add nothing beside them.
func (r *Run) MakeScratch(names ...string) error {
	mode := fs.FileMode(0o700)
	if r.Slot != nil {
		mode = 0o710 // for the run's own group, so that other runs find no way in
	}
	if err := mkdir(r.Dir, mode); err != nil {
		return err
	}
	if r.Host.Mounts {
		// Room for the copy first; once it is there, the rest is set to what the run may add.
		size := plus(r.Host.WorkspaceBytes, r.Limits.Disk)
		for range r.Copies {
			size = plus(size, r.Host.WorkspaceBytes)
		}
		if err := mountScratch(r.Dir, size, r.Host.WorkspaceFiles*int64(1+r.Copies)+executor.DiskInodes); err != nil {
			return err
		}
		r.Mounted = true
	}
	if r.Slot != nil {
		if err := os.Lchown(r.Dir, -1, r.GID); err != nil {
			return err
		}
	}
	if err := r.lockScratch(); err != nil {
		return err
	}
	for _, name := range append([]string{Work}, names...) {
		path := filepath.Join(r.Dir, name)
		if err := mkdir(path, 0o700); err != nil {
			return err
		}
		if r.UID >= 0 && name != Work { // which the copy gives away when it is complete
			if err := os.Lchown(path, r.UID, r.GID); err != nil {
				return err
			}
		}
	}
	return nil
}

// plus adds sizes without an overflow, which would turn a very large limit into none or into a tiny one.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// lockScratch takes the lock that says "somebody may still be alive in here". The guard shares it: it outlives a killed
// host program until the last process of the run is dead.
func (r *Run) lockScratch() error {
	f, err := os.Open(r.Dir)
	if err != nil {
		return err
	}
	r.Lock = f
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return &fs.PathError{Op: "flock", Path: r.Dir, Err: err}
	}
	return nil
}

// mkdir makes a directory with just that mode, whatever the host program's umask is.
func mkdir(path string, mode fs.FileMode) error {
	if err := os.Mkdir(path, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

func mountScratch(dir string, size, inodes int64) error {
	data := fmt.Sprintf("size=%d,nr_inodes=%d,mode=0710", size, inodes)
	if err := unix.Mount("containment", dir, "tmpfs", mountFlags, data); err != nil {
		return &fs.PathError{Op: "mount", Path: dir, Err: err}
	}
	return nil
}

// CopyOptions are those of the copy of a workspace, or of anything else that a run may change.
func (r *Run) CopyOptions() scratch.Options {
	o := scratch.Options{
		OmitNames: executor.DefaultHidden(),
		MaxBytes:  r.Host.WorkspaceBytes,
		MaxFiles:  r.Host.WorkspaceFiles,
	}
	if r.UID >= 0 {
		o.Owner = &scratch.Owner{UID: r.UID, GID: r.GID}
	}
	return o
}

// CopyWorkspace makes the private copy, with the overlay in it.
func (r *Run) CopyWorkspace(ctx context.Context, o scratch.Options) error {
	o.Overlay = r.Spec.Overlay
	if _, err := scratch.Copy(ctx, r.Spec.Workspace, r.Workspace(), o); err != nil {
		return err
	}
	if len(r.Spec.Artifacts) == 0 {
		return nil
	}
	var err error
	r.work, err = os.Open(r.Workspace())
	return err
}

// BoundDisk leaves Limits.Disk free on the run's file system, if it has one, once everything is there that is not the
// run's own doing.
func (r *Run) BoundDisk(context.Context) error {
	if !r.Mounted {
		return nil
	}
	var st unix.Statfs_t
	if err := unix.Statfs(r.Dir, &st); err != nil {
		return &fs.PathError{Op: "statfs", Path: r.Dir, Err: err}
	}
	used := int64(st.Blocks-st.Bfree) * st.Bsize
	files := int64(st.Files - st.Ffree)
	data := fmt.Sprintf("size=%d,nr_inodes=%d", plus(used, r.Limits.Disk), files+executor.DiskInodes)
	if err := unix.Mount("", r.Dir, "", unix.MS_REMOUNT|mountFlags, data); err != nil {
		return &fs.PathError{Op: "remount", Path: r.Dir, Err: err}
	}
	return nil
}

// CheckDir refuses a working directory that the run would not have. No payload runs yet, so the answer stays true.
func (r *Run) CheckDir(context.Context) error {
	if r.Spec.Dir == "" {
		return nil
	}
	root, err := unix.Open(r.Workspace(), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: r.Workspace(), Err: err}
	}
	defer unix.Close(root)
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(root, r.Spec.Dir, &how)
	if err != nil {
		return fmt.Errorf("Spec.Dir %q is no visible directory of the workspace: %w", r.Spec.Dir, err)
	}
	return unix.Close(fd)
}

// started notes what was used before the payload began.
func (r *Run) started() {
	if r.Group != nil && r.Host.around(cgroup.CPUTime) > 0 {
		r.before.total, r.before.user, r.before.system, _ = r.Group.CPUTimes()
	}
}

// poll notes when the file system is full, and says when the CPU time is used up.
func (r *Run) poll() executor.Cause {
	r.lookAtDisk()
	if r.Group != nil {
		if used, ok := r.Group.CPUTime(); ok && used-r.before.total > r.Limits.CPU {
			return executor.CauseCPUTimeout
		}
	}
	return executor.CauseUnknown
}

// lookAtDisk samples: there is no counter of refused writes.
func (r *Run) lookAtDisk() {
	var st unix.Statfs_t
	if !r.Mounted || unix.Statfs(r.Dir, &st) != nil {
		return
	}
	switch {
	case st.Bfree == 0:
		r.full = int64(st.Blocks) * st.Bsize
	case st.Ffree == 0:
		r.full = int64(st.Files)
	}
}
