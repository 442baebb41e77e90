// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/rollback/internal/object"
)

// worker walks directories. It holds one directory and one file open at a time, however wide and deep the tree is:
// a directory is opened by its path from the root, which costs the kernel little and us no descriptor for its parents.
type worker struct {
	*scanner
	dents   [64 << 10]byte
	listed  []listed
	nodes   []Node // slab
	arena   []byte // names
	buf     []byte // of small files
	least   int    // bytes of it, if there has to be one
	foreign []Foreign
	linked  []*Node
	staging []string
	subdirs []*Node
	reads   []*Node

	files, bytes int64 // of the directory in hand, taken back if it is listed again
}

func (w *worker) loop() {
	for {
		n, j := w.pool.take()
		switch {
		case n != nil:
			w.subdirs = w.subdirs[:0]
			w.dir(n)
			w.pool.done(w.subdirs)
		case j != nil:
			w.help(j)
			j.helpers.Done()
		default:
			return
		}
	}
}

// dir captures one directory, listing it again while it changes.
func (w *worker) dir(n *Node) {
	for try := 1; !w.stopped.Load(); try++ {
		foreign, linked := len(w.foreign), len(w.linked)
		if n.Parent == nil {
			w.staging = nil
		}
		err := w.once(n)
		if err == nil {
			return
		}
		w.entries.Add(-w.files)
		w.scanner.bytes.Add(-w.bytes)
		w.foreignCount.Add(int64(foreign - len(w.foreign)))
		w.foreign, w.linked, w.subdirs = w.foreign[:foreign], w.linked[:linked], w.subdirs[:0]
		n.Children = nil
		if err != errStale || try == maxTries {
			w.closed(n, err)
			return
		}
	}
}

// closed sorts out why a directory could not be captured.
func (w *worker) closed(n *Node, err error) {
	switch {
	case w.stopped.Load():
	case err == unix.EXDEV && n.Parent != nil:
		w.leave(n, Mount, "")
	case w.o.Tolerate && n.Parent != nil && err == errStale && w.last:
		w.leave(n, Unstable, "")
	case w.o.Tolerate && n.Parent != nil && err != errStale:
		w.leave(n, Unreadable, err.Error())
	case err == errStale:
		w.moved(n)
	default:
		w.fail(n, "list", err)
	}
}

// leave makes a listed entry a foreign one.
func (w *worker) leave(n *Node, why Why, detail string) {
	n.gone = true
	w.rewritten.Store(true)
	w.foreignCount.Add(1)
	w.foreign = append(w.foreign, Foreign{n.Path(), why, detail})
}

// once lists a directory, looks at what is in it and reads what has to be read.
func (w *worker) once(n *Node) error {
	w.files, w.bytes = 0, 0
	path := n.Path()
	if w.adopt(n, path) {
		return nil
	}
	fd, err := open(w.root, path, unix.O_RDONLY|unix.O_DIRECTORY)
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ESTALE:
		return w.outdated(n)
	default:
		return err
	}
	defer unix.Close(fd)

	var before, after unix.Statx_t
	if err := fstat(fd, &before); err != nil {
		return err
	}
	if device(&before) != w.dev || n.Parent != nil && mounted(&before) {
		return unix.EXDEV
	}
	if !n.sameInode(&before) {
		return w.outdated(n)
	}
	if err := w.look(fd, n, path); err != nil {
		return err
	}
	if err := fstat(fd, &after); err != nil {
		return err
	}
	if before.Ctime != after.Ctime || before.Mtime != after.Mtime {
		return errStale
	}
	n.set(&after, w.o.Owner)
	if err := w.dirAttributes(fd, n); err != nil {
		return err
	}
	return w.readAll(fd, n)
}

// outdated: what stands at the name is not what the parent's listing had. Listing the parent again is a matter of the
// whole tree, as it is done with; so there is no use in trying the directory again.
func (w *worker) outdated(n *Node) error {
	if n.Parent == nil {
		return unix.ENOENT
	}
	if w.o.Tolerate && w.last {
		w.leave(n, Unstable, "")
		return nil
	}
	w.moved(n)
	return nil
}

// look makes a node of every entry that is captured, in byte order of the names.
func (w *worker) look(fd int, dir *Node, path string) error {
	if err := w.list(fd, dir, path); err != nil {
		return err
	}
	cur := w.cache.open(w.cache.record(dir.cached))
	dir.Children = make([]*Node, 0, len(w.listed))
	w.reads = w.reads[:0]
	dir.clean = true
	var st unix.Statx_t
	for i := range w.listed {
		e := &w.listed[i]
		if e.ino != 0 {
			w.directory(dir, e, &cur)
			continue
		}
		switch err := lstat(fd, unsafe.StringData(e.name), &st); err {
		case nil:
		case unix.ENOENT, unix.ESTALE:
			return errStale
		default:
			w.entryFailed(dir, e.name, path, "stat", err)
			continue
		}
		if err := w.entry(fd, dir, e, &st, path, &cur); err != nil {
			return err
		}
	}
	if !cur.complete() {
		dir.clean = false
	}
	return nil
}

// entryFailed is for an entry that is no node yet.
func (w *worker) entryFailed(dir *Node, name, path, op string, err error) {
	if w.o.Tolerate {
		dir.clean = false
		w.notCaptured(join(path, name), Unreadable, err.Error())
		return
	}
	w.fail(&Node{Entry: object.Entry{Name: name}, Parent: dir}, op, err)
}

// notCaptured notes a foreign entry. There can be no more of them than of others.
func (w *worker) notCaptured(path string, why Why, detail string) {
	w.foreign = append(w.foreign, Foreign{path, why, detail})
	if n := w.foreignCount.Add(1); n > w.o.Limits.Files {
		w.limit(path, "Files", n, w.o.Limits.Files)
	}
}

// entry makes the node of one entry and takes from the cache what it may.
func (w *worker) entry(fd int, dir *Node, e *listed, st *unix.Statx_t, path string, cur *cursor) error {
	special := false
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFDIR, unix.S_IFLNK:
	default:
		special = true
	}
	switch {
	case elsewhere(st, w.dev):
		w.notCaptured(join(path, e.name), Mount, "")
		return nil
	case special && (w.o.SkipSpecial || w.o.Tolerate):
		w.notCaptured(join(path, e.name), Special, fsys.Kind(uint32(st.Mode)))
		return nil
	case special:
		w.failed.Store(true)
		add(&w.faults, &w.faults.special, Foreign{join(path, e.name), Special, fsys.Kind(uint32(st.Mode))})
		return nil
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		e.ino = st.Ino
		w.directory(dir, e, cur)
		return nil
	}
	n := w.node()
	n.Name, n.Parent = e.name, dir
	n.set(st, w.o.Owner)
	if !w.within(n) {
		return nil
	}
	rec, off := cur.find(e.name)
	n.cached = off
	switch p := dir.prev.Child(e.name); {
	case p != nil && p.same(n):
		w.carry(n, p)
	case n.Kind == object.Link:
		if err := w.link(fd, n, rec); err == errStale {
			return err
		} else if err != nil {
			w.entryFailed(dir, e.name, path, "readlink", err)
			return nil
		}
	case n.Kind == object.File:
		w.file(n, rec)
	}
	if rec == nil || !rec.sameAttributes(n) {
		dir.clean = false
	}
	dir.Children = append(dir.Children, n)
	return nil
}

// directory makes the node of a directory and queues it. Only its inode is known yet; what is opened must have it, and
// tells the rest.
func (w *worker) directory(dir *Node, e *listed, cur *cursor) {
	n := w.node()
	n.Name, n.Parent, n.Kind, n.Stat.Ino = e.name, dir, object.Dir, e.ino
	if !w.within(n) {
		return
	}
	n.prev = dir.prev.Child(e.name)
	rec, off := cur.find(e.name)
	if rec != nil && rec.kind() == object.Dir {
		n.cached = off
	} else {
		dir.clean = false
	}
	w.subdirs = append(w.subdirs, n)
	dir.Children = append(dir.Children, n)
}

// file decides whether a file has to be read.
func (w *worker) file(n *Node, rec record) {
	if w.o.RefuseSetID && n.Mode&0o6000 != 0 {
		w.failed.Store(true)
		add(&w.faults, &w.faults.setID, n.Path())
	}
	if n.Stat.Nlink > 1 {
		w.linked = append(w.linked, n)
	} else if rec != nil && len(rec.group()) > 0 {
		n.Parent.clean = false
	}
	if rec != nil && w.vouches(n, rec) {
		n.Data = rec.key()
		n.Xattrs, _ = parseXattrs(rec.xattrs())
		if !w.due(n) {
			return
		}
	}
	w.reads = append(w.reads, n)
}

// link reads the target of a symbolic link. A link cannot be changed but only replaced, so inode and ctime vouch for
// it.
func (w *worker) link(fd int, n *Node, rec record) error {
	if rec != nil && rec.sameStat(n) && w.trust.old(rec) && len(rec.target()) > 0 {
		n.Target = string(rec.target())
		return nil
	}
	var buf [unix.PathMax]byte
	size, err := unix.Readlinkat(fd, n.Name, buf[:])
	switch err {
	case nil:
	case unix.ENOENT, unix.EINVAL, unix.ESTALE:
		return errStale
	default:
		return err
	}
	n.Target = string(buf[:size])
	if rec == nil || string(rec.target()) != n.Target {
		n.Parent.clean = false
	}
	if rec == nil || !rec.sameStat(n) {
		w.rewritten.Store(true)
	}
	return nil
}

// within counts the entry and reports whether it is within the limits. Without Tolerate one that is not ends the walk.
func (w *worker) within(n *Node) bool {
	l := &w.o.Limits
	size := int64(0)
	if n.Kind == object.File {
		size = n.Size
	}
	field, value, bound := "", int64(0), int64(0)
	if size > l.FileSize {
		field, value, bound = "FileSize", size, l.FileSize
	} else if v := w.entries.Add(1); v > l.Files {
		w.entries.Add(-1)
		field, value, bound = "Files", v, l.Files
	} else if v := w.scanner.bytes.Add(size); v > l.Bytes || v < 0 {
		w.entries.Add(-1)
		w.scanner.bytes.Add(-size)
		field, value, bound = "Bytes", v, l.Bytes
	} else if d := n.depth(); n.Kind == object.Dir && d > l.Depth {
		w.entries.Add(-1)
		field, value, bound = "Depth", int64(d), int64(l.Depth)
	} else {
		w.files++
		w.bytes += size
		return true
	}
	if w.o.Tolerate {
		n.Parent.clean = false
		w.notCaptured(n.Path(), TooLarge, field)
	} else {
		w.limit(n.Path(), field, value, bound)
	}
	return false
}

func (n *Node) depth() (d int) {
	for p := n; p.Parent != nil; p = p.Parent {
		d++
	}
	return d
}

func (w *worker) node() *Node {
	if len(w.nodes) == 0 {
		w.nodes = make([]Node, 256)
	}
	n := &w.nodes[0]
	w.nodes = w.nodes[1:]
	return n
}

func join(path, name string) string {
	name = strings.Clone(name)
	if path == "." {
		return name
	}
	return path + "/" + name
}
