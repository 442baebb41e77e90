// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"
	"io/fs"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback/internal/object"
)

// Rescan is [Scan] for a tree that prev describes but for some directories. One that is touched is listed, and what in
// it has the same stat as before keeps its hash; any other is taken over from prev with everything below, so whatever
// is above a touched directory must be touched too. The root is always listed. A directory that prev does not know is
// scanned. With a nil prev everything is.
func Rescan(ctx context.Context, root int, prev *Result, touched func(path string) bool, o Options) (*Result, error) {
	if prev != nil {
		o.prev, o.touched, o.Cache = prev, touched, nil
	}
	return Scan(ctx, root, o)
}

// adopt takes a directory over from an earlier result, unless it has to be listed.
func (w *worker) adopt(n *Node, path string) bool {
	p := n.prev
	if w.o.touched == nil || p == nil || n.Parent == nil || p.Kind != object.Dir || p.Stat.Ino != n.Stat.Ino ||
		w.o.touched(path) {
		return false
	}
	n.Entry, n.Stat, n.kept = p.Entry, p.Stat, true
	w.below(n, p)
	all, within := w.o.prev.Foreign, path+"/"
	for i := sort.Search(len(all), func(i int) bool { return all[i].Path >= within }); i < len(all); i++ {
		if !strings.HasPrefix(all[i].Path, within) {
			break
		}
		w.foreign = append(w.foreign, all[i])
	}
	return true
}

// below copies the nodes below p, so that the two results share nothing that one of them may change.
func (w *worker) below(n, p *Node) {
	n.Children = make([]*Node, len(p.Children))
	for i, child := range p.Children {
		c := w.node()
		c.Entry, c.Stat, c.Parent, c.kept = child.Entry, child.Stat, n, child.Kind == object.Dir
		n.Children[i] = c
		w.within(c)
		w.inherit(c, child)
		w.below(c, child)
	}
}

// inherit notes what is kept beside the nodes.
func (w *worker) inherit(n, p *Node) {
	n.racy = p.racy || w.settled.young(p)
	if n.Kind != object.File {
		return
	}
	if n.Stat.Nlink > 1 {
		w.linked = append(w.linked, n)
	}
	if n.Data.Type == object.Chunks && w.o.prev.cache != nil {
		if list := w.o.prev.cache.chunks[p]; list != nil {
			w.keepChunks(n, list)
		}
	}
}

// same reports whether nothing can have changed between two looks at an entry that is no directory.
func (n *Node) same(m *Node) bool {
	return n.Kind == m.Kind && n.Kind != object.Dir && n.Stat == m.Stat && n.Mode == m.Mode && n.Sec == m.Sec &&
		n.Nsec == m.Nsec && n.Size == m.Size
}

// carry takes over what a look at an entry does not tell.
func (w *worker) carry(n, p *Node) {
	n.Data, n.Target, n.Xattrs, n.Group = p.Data, p.Target, p.Xattrs, p.Group
	w.inherit(n, p)
}

// HashFile returns what a scan would call the bytes of an open regular file. A file that changes meanwhile is an
// [*UnstableError] without a path.
func HashFile(fd int) (object.Key, int64, error) {
	var before, after unix.Statx_t
	if err := fstat(fd, &before); err != nil {
		return object.Key{}, 0, err
	}
	if !regular(&before) {
		return object.Key{}, 0, &fs.PathError{Op: "read", Path: ".", Err: errors.New("not a regular file")}
	}
	w := &worker{scanner: &scanner{o: &Options{}, chunks: map[*Node][]byte{}, big: make(chan []byte, 1)}}
	w.big <- nil
	n := &Node{}
	n.set(&before, false)
	key, size, err := w.bytesOf(fd, n)
	if err != nil {
		return object.Key{}, 0, err
	}
	if err := fstat(fd, &after); err != nil {
		return object.Key{}, 0, err
	}
	if size != n.Size || !n.unmoved(&after) {
		return object.Key{}, 0, &UnstableError{}
	}
	return key, size, nil
}
