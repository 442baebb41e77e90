// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"fmt"

	"golang.org/x/sys/unix"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/evoseal/containment/internal/fsys"
)

// probeName is a file in staging that shows whether the file system takes its name for another one.
const probeName = "fold-probe"

// checkFolding refuses to restore two names that this file system takes for one: the second would replace the first.
func (r *restorer) checkFolding(p *plan) error {
	dirs := map[string]bool{}
	for _, list := range [][]operation{p.make, p.put} {
		for i := range list {
			if list[i].was == nil {
				dirs[parentOf(list[i].path)] = true
			}
		}
	}
	if len(dirs) == 0 {
		return nil
	}
	all, err := r.foldsAll()
	if err != nil {
		return err
	}
	for dir := range dirs {
		if !all && !r.foldsIn(dir) {
			continue
		}
		e, ok := r.manifest.Root, true
		if dir != "." {
			e, ok = r.trees.find(r.manifest.Root, dir)
		}
		entries, err := r.trees.get(e.Data)
		if err != nil || !ok {
			return err
		}
		seen := map[string]string{}
		for _, e := range entries {
			folded := norm.NFKC.String(cases.Fold().String(norm.NFKC.String(e.Name)))
			if other, ok := seen[folded]; ok {
				return fmt.Errorf("%w: %q and %q in %q are one name on this file system", ErrUnsupported, other, e.Name, dir)
			}
			seen[folded] = e.Name
		}
	}
	return nil
}

// foldsAll asks the file system once, unless its kind tells: these fold in directories with the flag only.
func (r *restorer) foldsAll() (bool, error) {
	st, err := fsys.Statfs(r.staging)
	if err != nil {
		return false, err
	}
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC,
		unix.OVERLAYFS_SUPER_MAGIC:
		return fsys.Folds(r.staging), nil
	}
	fd, err := fsys.OpenBeneath(r.staging, probeName, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	unix.Close(fd)
	_, err = fsys.Lstat(r.staging, "FOLD-PROBE")
	if err != nil && err != unix.ENOENT {
		return false, err
	}
	return err == nil, unix.Unlinkat(r.staging, probeName, 0)
}

// foldsIn looks at the flag of a directory, or of the one that it will be made in and has it from.
func (r *restorer) foldsIn(dir string) bool {
	for {
		fd, err := fsys.OpenBeneath(r.target.fd, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err == nil {
			folds := fsys.Folds(fd)
			unix.Close(fd)
			return folds
		}
		if dir == "." || err != unix.ENOENT {
			return false
		}
		dir = parentOf(dir)
	}
}
