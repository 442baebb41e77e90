// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// RemoveDirs kills what is in the directories and removes them. It is for what a crash left, and it trusts the list no
// further than it must: a directory has to be an absolute path without links, in a control group file system, with a
// name that [Host.Create] gives; everything else is refused with an error that matches [ErrName]. Directories that do not
// exist are done. Every directory is tried, whatever happens to the others.
func RemoveDirs(ctx context.Context, dirs []string) error {
	var errs []error
	var open []dir
	defer func() {
		for i := range open {
			open[i].close()
			unix.Close(open[i].parent)
		}
	}()
	for _, p := range dirs {
		d, err := openLeft(p)
		switch {
		case errors.Is(err, unix.ENOENT):
		case err != nil:
			errs = append(errs, err)
		default:
			open = append(open, d)
		}
	}
	if len(open) == 0 {
		return errors.Join(errs...)
	}
	// All together: a limit on processes in one v1 directory stops what another one has to kill.
	errs = append(errs, kill(ctx, open))
	for i := range open {
		errs = append(errs, open[i].remove(ctx))
	}
	return errors.Join(errs...)
}

// openLeft opens a directory of the list, together with its parent.
func openLeft(path string) (dir, error) {
	parentPath, name := filepath.Split(path)
	rest, ours := strings.CutPrefix(name, prefix)
	if _, err := base(rest); err != nil || !ours || !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return dir{}, fmt.Errorf("%w: %q must be an absolute path that ends in %sNAME", ErrName, path, prefix)
	}
	parent, err := unix.Openat2(unix.AT_FDCWD, filepath.Clean(parentPath), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return dir{}, fail("open", parentPath, err)
	}
	d := dir{ops: kernel, parent: parent, name: name, path: path}
	if d.version = version(parent); d.version == 0 {
		unix.Close(parent)
		return dir{}, fmt.Errorf("%w: %q is not in a control group file system", ErrName, path)
	}
	if err := d.open(); err != nil {
		unix.Close(parent)
		return dir{}, err
	}
	return d, nil
}

func version(fd int) int {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return 0
	}
	switch st.Type {
	case unix.CGROUP_SUPER_MAGIC:
		return 1
	case unix.CGROUP2_SUPER_MAGIC:
		return 2
	}
	return 0
}
