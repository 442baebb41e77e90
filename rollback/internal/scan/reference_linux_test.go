// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback/internal/object"
)

// limits that no test tree reaches.
var roomy = Limits{Files: 1e6, Bytes: 1 << 50, FileSize: 1 << 45, Depth: 512}

// reference is what a scan must find, by the plainest means: one name after the other, everything read, no cache. It
// returns the root's entry and, for messages, all entries by path.
func reference(t testing.TB, root string, exclude []string, xattrs bool) (object.Entry, map[string]object.Entry) {
	t.Helper()
	all := map[string]object.Entry{}
	names := map[uint64][]string{}
	walk(t, root, ".", exclude, func(path string, st *syscall.Stat_t) {
		if st.Mode&syscall.S_IFMT == syscall.S_IFREG && st.Nlink > 1 {
			names[st.Ino] = append(names[st.Ino], path)
		}
	})
	groups := map[string]string{}
	for _, paths := range names {
		sort.Strings(paths)
		for _, p := range paths {
			if len(paths) > 1 {
				groups[p] = paths[0]
			}
		}
	}
	var sum func(path string) object.Entry
	sum = func(path string) object.Entry {
		e := plainEntry(t, root, path, xattrs)
		if e.Kind == object.Dir {
			var list []object.Entry
			for _, name := range plainNames(t, root, path, exclude) {
				child := sum(plainJoin(path, name))
				child.Group = groups[plainJoin(path, name)]
				list = append(list, child)
			}
			e.Data, e.Content = object.Sum(object.Tree, object.EncodeTree(list)), object.ContentDigest(list)
		}
		e.Group = groups[path]
		all[path] = e
		return e
	}
	return sum("."), all
}

func walk(t testing.TB, root, path string, exclude []string, visit func(string, *syscall.Stat_t)) {
	info, err := os.Lstat(root + "/" + path)
	if err != nil {
		t.Fatal(err)
	}
	visit(path, info.Sys().(*syscall.Stat_t))
	if info.IsDir() {
		for _, name := range plainNames(t, root, path, exclude) {
			walk(t, root, plainJoin(path, name), exclude, visit)
		}
	}
}

func plainJoin(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

func plainNames(t testing.TB, root, path string, exclude []string) (names []string) {
	t.Helper()
	f, err := os.Open(root + "/" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found, err := f.Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		full := plainJoin(path, name)
		info, err := os.Lstat(root + "/" + full)
		if err != nil {
			t.Fatal(err)
		}
		special := info.Mode().Type() &^ (os.ModeDir | os.ModeSymlink)
		if strings.EqualFold(name, ".git") || path == "." && strings.HasPrefix(name, ".rollback-") || special != 0 ||
			slices.ContainsFunc(exclude, func(p string) bool {
				if strings.Contains(p, "/") {
					return doublestar.MatchUnvalidated(p, full)
				}
				return doublestar.MatchUnvalidated(p, name)
			}) {
			continue
		}
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func plainEntry(t testing.TB, root, path string, xattrs bool) object.Entry {
	t.Helper()
	full := root + "/" + path
	var st unix.Stat_t
	if err := unix.Lstat(full, &st); err != nil {
		t.Fatal(err)
	}
	e := object.Entry{Name: filepath.Base(path), Mode: uint32(st.Mode) & 0o7777}
	if st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&0o6000 != 0 {
		e.UID, e.GID = st.Uid, st.Gid
	}
	e.Sec, e.Nsec = st.Mtim.Sec, uint32(st.Mtim.Nsec)
	if path == "." {
		e.Name = ""
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		e.Kind = object.Dir
	case unix.S_IFLNK:
		target, err := os.Readlink(full)
		if err != nil {
			t.Fatal(err)
		}
		e.Kind, e.Target = object.Link, target
		return e
	default:
		e.Kind, e.Size = object.File, st.Size
		e.Data = plainData(t, full)
	}
	if xattrs {
		e.Xattrs = plainXattrs(t, full)
	}
	return e
}

func plainData(t testing.TB, full string) object.Key {
	t.Helper()
	data, err := os.ReadFile(full)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) <= object.MaxBlob {
		return object.Sum(object.Blob, data)
	}
	var list []object.Chunk
	for off := 0; off < len(data); off += object.ChunkLen {
		piece := data[off:min(off+object.ChunkLen, len(data))]
		zero := strings.Trim(string(piece), "\x00") == ""
		switch last := len(list) - 1; {
		case zero && last >= 0 && list[last].Hole:
			list[last].Len += int64(len(piece))
		case zero:
			list = append(list, object.Chunk{Hole: true, Len: int64(len(piece))})
		default:
			list = append(list, object.Chunk{Hash: object.Sum(object.Blob, piece).Hash, Len: int64(len(piece))})
		}
	}
	return object.Sum(object.Chunks, object.EncodeChunks(list))
}

func plainXattrs(t testing.TB, full string) (list []object.Xattr) {
	t.Helper()
	var buf [1 << 16]byte
	n, err := unix.Listxattr(full, buf[:])
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(string(buf[:n]), "\x00") {
		if strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.posix_acl_") {
			var value [1 << 16]byte
			m, err := unix.Getxattr(full, name, value[:])
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, object.Xattr{Name: name, Value: string(value[:m])})
		}
	}
	slices.SortFunc(list, func(a, b object.Xattr) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// entries lists a scanned tree by path.
func entries(root *Node) map[string]object.Entry {
	all := map[string]object.Entry{}
	var visit func(n *Node)
	visit = func(n *Node) {
		all[n.Path()] = n.Entry
		for _, c := range n.Children {
			visit(c)
		}
	}
	visit(root)
	return all
}

// equalsReference fails unless the result is what the plain walk finds.
func equalsReference(t testing.TB, root string, r *Result, o Options) {
	t.Helper()
	want, all := reference(t, root, o.Exclude.Patterns(), o.Xattrs)
	if diff := cmp.Diff(all, entries(r.Root)); diff != "" {
		t.Fatalf("the scan is not the plain walk (-want +got):\n%s", diff)
	}
	if r.Tree() != want.Data || r.Content() != want.Content {
		t.Fatal("equal entries, other sums")
	}
}

func openDir(t testing.TB, path string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func mustScan(t testing.TB, root int, o Options) *Result {
	t.Helper()
	if o.Limits == (Limits{}) {
		o.Limits = roomy
	}
	r, err := Scan(t.Context(), root, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
