// SPDX-License-Identifier: Apache-2.0

package rlimit

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/scratch"
)

// mountFlags: nothing on a run's file system is a device or changes an id, whoever executes it.
const mountFlags = unix.MS_NOSUID | unix.MS_NODEV

// makeScratch makes the run's directory with the workspace, home and temporary directory. Only these three belong to the
// run's uid, so it can add nothing beside them.
func (r *run) makeScratch(context.Context) error {
	mode := fs.FileMode(0o700)
	if r.slot != nil {
		mode = 0o710 // for the run's own group, so that other runs find no way in
	}
	if err := mkdir(r.dir, mode); err != nil {
		return err
	}
	if r.ex.mounts {
		// Room for the copy first; once it is there, the rest is set to what the run may add.
		size := plus(r.ex.config.WorkspaceBytes, r.limits.Disk)
		if err := mountScratch(r.dir, size, r.ex.config.WorkspaceFiles+executor.DiskInodes); err != nil {
			return err
		}
		r.mounted = true
	}
	if r.slot != nil {
		if err := os.Lchown(r.dir, -1, r.gid); err != nil {
			return err
		}
	}
	if err := r.lockScratch(); err != nil {
		return err
	}
	for _, name := range []string{"work", "home", "tmp"} {
		path := filepath.Join(r.dir, name)
		if err := mkdir(path, 0o700); err != nil {
			return err
		}
		if r.uid >= 0 && name != "work" { // which the copy gives away when it is complete
			if err := os.Lchown(path, r.uid, r.gid); err != nil {
				return err
			}
		}
		if r.ex.landlock != nil {
			p, err := openPlace(path, writeRights)
			if err != nil {
				return err
			}
			r.places = append(r.places, p)
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
func (r *run) lockScratch() error {
	f, err := os.Open(r.dir)
	if err != nil {
		return err
	}
	r.lock = f
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return &fs.PathError{Op: "flock", Path: r.dir, Err: err}
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

// copyWorkspace copies the workspace, and then leaves Limits.Disk free on the run's file system.
func (r *run) copyWorkspace(ctx context.Context) error {
	o := scratch.Options{
		OmitNames: executor.DefaultHidden(),
		MaxBytes:  r.ex.config.WorkspaceBytes,
		MaxFiles:  r.ex.config.WorkspaceFiles,
	}
	if r.uid >= 0 {
		o.Owner = &scratch.Owner{UID: r.uid, GID: r.gid}
		o.ReadOnly, o.Sealed = r.spec.ReadOnly, r.spec.Hidden
	} else {
		o.Omit = r.spec.Hidden
	}
	if _, err := scratch.Copy(ctx, r.spec.Workspace, r.workspace(), o); err != nil {
		return err
	}
	if len(r.spec.Artifacts) > 0 {
		var err error
		if r.work, err = os.Open(r.workspace()); err != nil {
			return err
		}
	}
	if !r.mounted {
		return nil
	}
	var st unix.Statfs_t
	if err := unix.Statfs(r.dir, &st); err != nil {
		return &fs.PathError{Op: "statfs", Path: r.dir, Err: err}
	}
	used := int64(st.Blocks-st.Bfree) * st.Bsize
	files := int64(st.Files - st.Ffree)
	data := fmt.Sprintf("size=%d,nr_inodes=%d", plus(used, r.limits.Disk), files+executor.DiskInodes)
	if err := unix.Mount("", r.dir, "", unix.MS_REMOUNT|mountFlags, data); err != nil {
		return &fs.PathError{Op: "remount", Path: r.dir, Err: err}
	}
	return nil
}

// checkDir refuses a working directory that the run would not have. No payload runs yet, so the answer stays true.
func (r *run) checkDir(context.Context) error {
	if r.spec.Dir == "" {
		return nil
	}
	root, err := unix.Open(r.workspace(), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: r.workspace(), Err: err}
	}
	defer unix.Close(root)
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(root, r.spec.Dir, &how)
	if err != nil {
		return fmt.Errorf("Spec.Dir %q is no visible directory of the workspace: %w", r.spec.Dir, err)
	}
	return unix.Close(fd)
}

// poll notes when the file system is full, and says when the CPU time is used up.
func (r *run) poll() executor.Cause {
	r.lookAtDisk()
	if r.group != nil {
		if used, ok := r.group.CPUTime(); ok && used > r.limits.CPU {
			return executor.CauseCPUTimeout
		}
	}
	return executor.CauseUnknown
}

// lookAtDisk samples: there is no counter of refused writes.
func (r *run) lookAtDisk() {
	var st unix.Statfs_t
	if !r.mounted || unix.Statfs(r.dir, &st) != nil {
		return
	}
	switch {
	case st.Bfree == 0:
		r.full = int64(st.Blocks) * st.Bsize
	case st.Ffree == 0:
		r.full = int64(st.Files)
	}
}
