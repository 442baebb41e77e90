// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Tree is what [Look] saw: paths relative to the root, "." for the root itself.
type Tree map[string]Node

// Node is one entry of a tree.
type Node struct {
	Mode      uint32 // st_mode: kind and permission bits
	UID, GID  uint32
	Size      int64
	Sec, Nsec int64    // modification time
	Sum       [32]byte // SHA-256 of a file's bytes
	Target    string   // of a symbolic link
	Group     string   // a file with several names in the tree: the first of them in byte order; else empty
	Xattrs    string   // name=value of the namespaces "user." and "system.posix_acl", sorted

	Touch Touch // what only a write to this very inode changes; no part of Differences
}

// Touch tells whether an inode is the same and was left alone.
type Touch struct {
	Dev, Ino         uint64
	ChangeS, ChangeN int64 // ctime
}

// Look reads a whole tree, `.git` and everything else included, and follows no link. It is slow and simple on purpose.
func Look(root string) (Tree, error) {
	tree, names := Tree{}, map[Touch][]string{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		n, links, err := look(path)
		if err != nil {
			return fmt.Errorf("look: %w", err)
		}
		tree[rel] = n
		if links > 1 && n.Mode&unix.S_IFMT == unix.S_IFREG {
			key := Touch{Dev: n.Touch.Dev, Ino: n.Touch.Ino}
			names[key] = append(names[key], rel)
		}
		return nil
	})
	for _, group := range names {
		for _, rel := range group {
			if n := tree[rel]; len(group) > 1 {
				n.Group = slices.Min(group)
				tree[rel] = n
			}
		}
	}
	return tree, err
}

func look(path string) (n Node, links uint64, err error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return n, 0, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	n = Node{Mode: st.Mode, UID: st.Uid, GID: st.Gid, Size: st.Size, Sec: st.Mtim.Sec, Nsec: int64(st.Mtim.Nsec)}
	n.Touch = Touch{Dev: st.Dev, Ino: st.Ino, ChangeS: st.Ctim.Sec, ChangeN: int64(st.Ctim.Nsec)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		data, err := os.ReadFile(path)
		if err != nil {
			return n, 0, err
		}
		n.Sum = sha256.Sum256(data)
	case unix.S_IFLNK:
		if n.Target, err = os.Readlink(path); err != nil {
			return n, 0, err
		}
		return n, uint64(st.Nlink), nil
	case unix.S_IFDIR:
		n.Size = 0 // of the list of names, which is the file system's business
	default:
		return n, uint64(st.Nlink), nil
	}
	n.Xattrs, err = xattrs(path)
	return n, uint64(st.Nlink), err
}

func xattrs(path string) (string, error) {
	buffer := make([]byte, 64<<10)
	size, err := unix.Llistxattr(path, buffer)
	if err != nil {
		if err == unix.ENOTSUP {
			return "", nil
		}
		return "", &fs.PathError{Op: "listxattr", Path: path, Err: err}
	}
	var pairs []string
	for name := range strings.SplitSeq(strings.TrimRight(string(buffer[:size]), "\x00"), "\x00") {
		if !strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "system.posix_acl") {
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Lgetxattr(path, name, value)
		if err != nil {
			return "", &fs.PathError{Op: "getxattr", Path: path, Err: err}
		}
		pairs = append(pairs, fmt.Sprintf("%s=%q", name, value[:n]))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "\n"), nil
}

// Differences says in which entries two trees differ in anything that a user can see; inodes and change times are not.
func Differences(want, got Tree) (list []string) {
	for _, path := range slices.Sorted(maps.Keys(want)) {
		g, ok := got[path]
		if !ok {
			list = append(list, fmt.Sprintf("%q is missing", path))
			continue
		}
		w := want[path]
		w.Touch, g.Touch = Touch{}, Touch{}
		if w != g {
			list = append(list, fmt.Sprintf("%q is %v, want %v", path, g, w))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[path]; !ok {
			list = append(list, fmt.Sprintf("%q is too much", path))
		}
	}
	return list
}

// Touched says which entries of the first tree are not the same untouched inodes in the second.
func Touched(before, after Tree) (list []string) {
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if before[path].Touch != after[path].Touch {
			list = append(list, fmt.Sprintf("%q was touched: %v, before %v", path, after[path].Touch, before[path].Touch))
		}
	}
	return list
}

// Under returns the part of a tree at and below a path; the names stay.
func (t Tree) Under(path string) Tree {
	part := Tree{}
	for name, n := range t {
		if name == path || strings.HasPrefix(name, path+"/") {
			part[name] = n
		}
	}
	return part
}

// Without returns the tree without what lies at and below the paths.
func (t Tree) Without(paths ...string) Tree {
	rest := maps.Clone(t)
	for _, path := range paths {
		for name := range t.Under(path) {
			delete(rest, name)
		}
	}
	return rest
}

// String is short: a sum is told by its first bytes.
func (n Node) String() string {
	text := fmt.Sprintf("{%o %d:%d %d bytes, %d.%09d", n.Mode, n.UID, n.GID, n.Size, n.Sec, n.Nsec)
	if n.Mode&unix.S_IFMT == unix.S_IFREG {
		text += fmt.Sprintf(", sha256 %x", n.Sum[:4])
	}
	for _, more := range []string{n.Target, n.Group, n.Xattrs} {
		if more != "" {
			text += fmt.Sprintf(", %q", more)
		}
	}
	return text + "}"
}
