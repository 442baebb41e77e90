// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/rollback/internal/object"
)

// statMask is what a signature needs, and not the access and birth times.
const statMask = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_NLINK | unix.STATX_UID | unix.STATX_GID |
	unix.STATX_MTIME | unix.STATX_CTIME | unix.STATX_INO | unix.STATX_SIZE | unix.STATX_BLOCKS

// lstat is statx without a copy of the name, which ends in a NUL: it is called once for each entry of a tree, and the
// copy would be a third of its cost.
func lstat(dir int, name *byte, st *unix.Statx_t) error {
	return statx(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, st)
}

// fstat is the same for an open file.
func fstat(fd int, st *unix.Statx_t) error {
	var empty byte
	return statx(fd, &empty, unix.AT_EMPTY_PATH, st)
}

func statx(dir int, name *byte, flags uintptr, st *unix.Statx_t) error {
	return fsys.Retry(func() error {
		_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(dir), uintptr(unsafe.Pointer(name)), flags, statMask,
			uintptr(unsafe.Pointer(st)), 0)
		if errno != 0 {
			return errno
		}
		return nil
	})
}

func device(st *unix.Statx_t) uint64 { return unix.Mkdev(st.Dev_major, st.Dev_minor) }

// mounted reports whether something is mounted on the entry, for kernels that tell (5.8); on others the device does,
// for everything but a bind mount of the same file system.
func mounted(st *unix.Statx_t) bool {
	return st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// elsewhere reports whether an entry is on another file system than the tree, whose device is dev. Where the kernel tells
// mounts the device counts for directories only, since a btrfs subvolume has one of its own: overlayfs gives one to the
// files of each layer.
func elsewhere(st *unix.Statx_t, dev uint64) bool {
	if mounted(st) || device(st) == dev {
		return mounted(st)
	}
	return st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 || st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// set fills in what a stat says. It leaves name, data and target alone.
func (n *Node) set(st *unix.Statx_t, owner bool) {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		n.Kind, n.Size = object.File, int64(st.Size)
	case unix.S_IFDIR:
		n.Kind = object.Dir
	case unix.S_IFLNK:
		n.Kind = object.Link
	}
	n.Mode = uint32(st.Mode) & 0o7777
	n.Sec, n.Nsec = st.Mtime.Sec, st.Mtime.Nsec
	n.Stat = Stat{
		Dev: device(st), Ino: st.Ino, CtimeSec: st.Ctime.Sec, CtimeNsec: st.Ctime.Nsec, Nlink: st.Nlink, Blocks: int64(st.Blocks),
		UID: st.Uid, GID: st.Gid,
	}
	// What a set-id bit means depends on the owner, so the two are kept together or not at all.
	if owner || n.Kind == object.File && n.Mode&0o6000 != 0 {
		n.UID, n.GID = st.Uid, st.Gid
	}
}

// unmoved reports whether nothing was written, and nothing about the entry changed, since the node was set.
func (n *Node) unmoved(st *unix.Statx_t) bool {
	return n.sameInode(st) && n.Stat.CtimeSec == st.Ctime.Sec && n.Stat.CtimeNsec == st.Ctime.Nsec &&
		n.Sec == st.Mtime.Sec && n.Nsec == st.Mtime.Nsec && (n.Kind != object.File || n.Size == int64(st.Size))
}

func (n *Node) sameInode(st *unix.Statx_t) bool { return n.Stat.Ino == st.Ino }

func regular(st *unix.Statx_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFREG }
