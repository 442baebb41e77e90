// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback/internal/object"
)

// captured reports whether an extended attribute is part of a checkpoint: what users set, and access control lists.
func captured(name string) bool {
	return strings.HasPrefix(name, "user.") ||
		name == "system.posix_acl_access" || name == "system.posix_acl_default"
}

// fileAttributes lists the extended attributes of an open file.
func (w *worker) fileAttributes(fd int, n *Node) (err error) {
	n.Xattrs, err = w.attributes(fd)
	return err
}

// dirAttributes does so for a directory, unless the cache knows them, and notes whether anything that the parent's
// object holds of the directory itself has changed.
func (w *worker) dirAttributes(fd int, n *Node) (err error) {
	var rec record
	if n.cached != 0 {
		rec = w.cache.record(n.cached)
	}
	known := false
	if rec != nil && rec.sameStat(n) && w.trust.old(rec) {
		n.Xattrs, known = parseXattrs(rec.xattrs())
	}
	if !known {
		if n.Xattrs, err = w.attributes(fd); err != nil {
			return err
		}
	}
	n.changed = rec == nil || !rec.sameAttributes(n) || !bytes.Equal(rec.xattrs(), appendXattrs(nil, n.Xattrs))
	return nil
}

// attributes returns them sorted by name. A file system that has none has none.
func (w *worker) attributes(fd int) ([]object.Xattr, error) {
	if !w.o.Xattrs || w.noXattrs.Load() {
		return nil, nil
	}
	names, err := sized(func(buf []byte) (int, error) { return unix.Flistxattr(fd, buf) })
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		if !w.noXattrs.Swap(true) {
			w.o.Logger.Warn("rollback: the file system has no extended attributes")
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []object.Xattr
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if !captured(name) {
			continue
		}
		value, err := sized(func(buf []byte) (int, error) { return unix.Fgetxattr(fd, name, buf) })
		if err == unix.ENODATA {
			continue // removed meanwhile, which moves the ctime
		}
		if err != nil {
			return nil, err
		}
		list = append(list, object.Xattr{Name: name, Value: string(value)})
	}
	slices.SortFunc(list, func(a, b object.Xattr) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// sized calls a function that says how much it would write into a buffer that is too small, until one is large enough.
func sized(call func([]byte) (int, error)) ([]byte, error) {
	const first, most = 256, 1 << 17 // the kernel's bound is 64 KiB
	for size := first; ; size *= 4 {
		buf := make([]byte, size)
		n, err := call(buf)
		if err != unix.ERANGE || size > most {
			return buf[:max(n, 0)], err
		}
	}
}
