// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
)

// manySyncs is the number of files up to which each is flushed by itself, all at the same time; above that one flush of
// the file system costs less. Ext4: 10 files at once 0.7 ms, one after another 2.3 ms; 1,000 files each 1.4 s, at once
// 0.06 s.
const manySyncs = 64

// syncAll flushes descriptors at the same time, so that the journal of the file system commits once for all. A flush
// that failed is never tried again: the kernel may have dropped what it could not write, and would then report
// success.
func (r *restorer) syncAll(fds []int) error {
	return parallel(context.Background(), manySyncs, len(fds), func(i int) error {
		if err := r.s.try("sync"); err != nil {
			return err
		}
		return fsys.Retry(func() error { return unix.Fsync(fds[i]) })
	})
}

func (r *restorer) syncFS(fd int) error {
	if err := r.s.try("sync"); err != nil {
		return err
	}
	return fsys.SyncFS(fd)
}

// syncTree makes durable what was done to these directories and files of the tree.
func (r *restorer) syncTree(paths map[string]bool) error {
	if !r.s.sync() {
		return nil
	}
	if len(paths) > manySyncs {
		return r.syncFS(r.target.fd)
	}
	fds := []int{r.target.fd}
	defer func() {
		for _, fd := range fds[1:] {
			unix.Close(fd)
		}
	}()
	for path := range paths {
		if path == "." {
			continue
		}
		fd, err := fsys.OpenBeneath(r.target.fd, path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
		switch {
		case err == nil:
			fds = append(fds, fd)
		case err == unix.ENOENT: // removed
		default: // a link, or a mode that does not let us open it
			return r.syncFS(r.target.fd)
		}
	}
	return r.syncAll(fds)
}
