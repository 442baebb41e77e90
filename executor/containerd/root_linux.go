// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/containerd/api/types"
	"github.com/containerd/containerd/v2/core/leases"

	"github.com/evoseal/containment/executor/containerd/internal/box"
)

// rootfs is where the root file system of every box of an executor comes from.
type rootfs struct {
	dir         string // a plain directory, for the caller; empty: a snapshot
	parent      string // of the snapshots
	snapshotter string
	identity    string // for the fingerprint: "skeleton", a digest, a path
}

// defaultSnapshotter is the one that containerd takes on Linux.
const defaultSnapshotter = "overlayfs"

// skeletonDirs are the directories of a root that holds nothing.
var skeletonDirs = []string{"etc", "usr", "var", "home", "root", "var/tmp"}

// etcFiles stand in for the host's: they name the ids of a box and nothing else.
var etcFiles = map[string]string{
	"etc/passwd":        fmt.Sprintf("root:x:0:0::/:/sbin/nologin\ncontainment:x:%d:%d::%s:/bin/sh\n", box.UID, box.GID, box.Home),
	"etc/group":         fmt.Sprintf("root:x:0:\ncontainment:x:%d:\n", box.GID),
	"etc/hosts":         "127.0.0.1 localhost " + Hostname + "\n::1 localhost\n",
	"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}

// makeSkeleton makes a root file system below dir. Reads that are links on the host are links inside; for the others there
// is a mount point. So it is for the mount points of targets, which differ from run to run: those are made in a directory
// per set of them.
func makeSkeleton(dir string, points []mountPoint) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, point := range mountPoints() {
		if err := root.MkdirAll(strings.TrimPrefix(point, "/"), 0o755); err != nil {
			return err
		}
	}
	for _, d := range skeletonDirs {
		if err := root.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	for name, text := range etcFiles {
		if err := root.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, p := range points {
		if err := p.make(root); err != nil {
			return err
		}
	}
	return openToAll(dir)
}

// openToAll gives everything the modes that the umask may have taken.
func openToAll(dir string) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.Chmod(path, 0o755)
		case d.Type().IsRegular():
			return os.Chmod(path, 0o644)
		}
		return nil
	})
}

// mountPoint is a name in a root: a place for a bind, or a link.
type mountPoint struct {
	Path string // absolute, clean
	Dir  bool
	Link string // where it leads, if it is a link
}

func (p mountPoint) make(root *os.Root) error {
	rel := strings.TrimPrefix(p.Path, "/")
	if parent := filepath.Dir(rel); parent != "." {
		if err := root.MkdirAll(parent, 0o755); err != nil {
			return fmt.Errorf("mount point %s: %w", p.Path, err)
		}
	}
	var err error
	switch {
	case p.Link != "":
		if _, statErr := root.Lstat(rel); statErr == nil {
			return nil
		}
		err = root.Symlink(p.Link, rel)
	case p.Dir:
		err = root.MkdirAll(rel, 0o755)
	default:
		if _, statErr := root.Lstat(rel); statErr == nil {
			return nil // a file of ours, which the bind covers
		}
		err = root.WriteFile(rel, nil, 0o644)
	}
	if err != nil {
		return fmt.Errorf("mount point %s: %w", p.Path, err)
	}
	return nil
}

// below reports whether a path is one of the others, or lies in one.
func below(path string, dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
	})
}

// prepareSnapshot makes the snapshot of one box. A lease of the daemon keeps the garbage collector from it until the
// container's record does.
func (c *conn) prepareSnapshot(ctx context.Context, r rootfs, id string, labels map[string]string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := c.within(context.WithoutCancel(ctx), askTime) // as with the record of a container
	defer cancel()
	ctx, done, err := c.client.WithLease(ctx, leases.WithID(id), leases.WithExpiration(createTime*4), leases.WithLabels(labels))
	if err != nil {
		return err
	}
	_ = done // it expires; deleting it is part of the box's end
	_, err = c.client.SnapshotService(r.snapshotter).View(ctx, id, r.parent)
	return err
}

// rootMounts are what the shim mounts as the root.
func (c *conn) rootMounts(ctx context.Context, r rootfs, id string) ([]*types.Mount, error) {
	if r.parent == "" {
		return nil, nil
	}
	ctx, cancel := c.within(ctx, askTime)
	defer cancel()
	mounts, err := c.client.SnapshotService(r.snapshotter).Mounts(ctx, id)
	if err != nil {
		return nil, err
	}
	var list []*types.Mount
	for _, m := range mounts {
		list = append(list, &types.Mount{Type: m.Type, Source: m.Source, Target: m.Target, Options: m.Options})
	}
	return list, nil
}

// removeSnapshot removes the snapshot of a box and its lease.
func (c *conn) removeSnapshot(ctx context.Context, r rootfs, id string) error {
	err := c.again(ctx, "remove snapshot "+id, func(ctx context.Context) error {
		return c.client.SnapshotService(r.snapshotter).Remove(ctx, id)
	})
	if err != nil {
		return err
	}
	return c.again(ctx, "delete lease "+id, func(ctx context.Context) error {
		return c.client.LeasesService().Delete(ctx, leases.Lease{ID: id})
	})
}
