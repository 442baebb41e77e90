// SPDX-License-Identifier: Apache-2.0

package scratch

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
)

// Overlay is a directory of files that take the place of others, looked through and held open. [Copy] makes one from
// Options.Overlay; whoever packs a tree in another way opens it with [OpenOverlay], walks the nodes beside the tree and
// takes the content from [Overlay.Open].
type Overlay struct {
	fd   int
	path string
	root *OverlayNode
}

// OverlayNode is a directory or a regular file of an overlay. Child, All and Dir take nil, for a name that it does not have.
type OverlayNode struct {
	mode  uint32 // S_IFDIR or S_IFREG, and the permission bits
	times [2]unix.Timespec
	size  int64
	below map[string]*OverlayNode
}

// OpenOverlay looks through the directory at path, which must not be a link, and follows nothing below. More than maxFiles
// entries are an [ErrLimit]. Everything that is neither a directory nor a regular file is an [ErrOverlay]; up to 20 of
// them are named. So is a mount point, which the kernel answers with EXDEV.
func OpenOverlay(ctx context.Context, path string, maxFiles int64) (*Overlay, error) {
	path = filepath.Clean(path) // a slash at the end would follow a link
	fd, err := openat(unix.AT_FDCWD, path, openDir, 0)
	if err != nil {
		return nil, fmt.Errorf("scratch: overlay: %w", &os.PathError{Op: "open", Path: path, Err: err})
	}
	s := &overlayScan{top: fd, left: maxFiles, listing: make([]byte, 8<<10)}
	o := &Overlay{fd: fd, path: path}
	st, err := fsys.Fstat(fd)
	if err == nil {
		o.root = newOverlayNode(&st)
		s.list(ctx, fd, "", o.root)
		s.below(ctx, "", o.root)
		err = s.faults.err()
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("scratch: overlay %q: %w", path, err)
	}
	return o, nil
}

// Close gives the directory back.
func (o *Overlay) Close() error { return unix.Close(o.fd) }

// Root is the top directory.
func (o *Overlay) Root() *OverlayNode { return o.root }

// Open opens a regular file of the overlay by its path below the top, for reading. What was exchanged for something else
// since the overlay was opened is an [*EntryError] that matches [ErrChanged].
func (o *Overlay) Open(path string) (*os.File, error) {
	fd, err := o.open(path)
	if err != nil {
		return nil, overlayFault(path, err)
	}
	st, err := fsys.Fstat(fd)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = ErrChanged
	}
	if err != nil {
		unix.Close(fd)
		return nil, overlayFault(path, err)
	}
	return os.NewFile(uintptr(fd), filepath.Join(o.path, path)), nil
}

func (o *Overlay) open(path string) (int, error) { return fsys.OpenBeneath(o.fd, path, openFile, 0) }

// overlayFault is about an entry that was there a moment ago and should have stayed what it was.
func overlayFault(path string, err error) *EntryError {
	switch err {
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ENXIO:
		err = fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return &EntryError{Op: "overlay", Path: path, Err: err}
}

// Child returns the node of an entry, or nil.
func (n *OverlayNode) Child(name string) *OverlayNode {
	if n == nil {
		return nil
	}
	return n.below[name]
}

// All yields the entries by name.
func (n *OverlayNode) All() iter.Seq2[string, *OverlayNode] {
	return func(yield func(string, *OverlayNode) bool) {
		if n == nil {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(n.below)) {
			if !yield(name, n.below[name]) {
				return
			}
		}
	}
}

// Dir reports whether the node is a directory; else it is a regular file.
func (n *OverlayNode) Dir() bool { return n != nil && n.mode&unix.S_IFMT == unix.S_IFDIR }

// Mode returns the permission bits, without set-id and sticky bits.
func (n *OverlayNode) Mode() os.FileMode { return os.FileMode(n.mode & kept) }

// Size returns the size of a file in bytes, as it was when the overlay was opened.
func (n *OverlayNode) Size() int64 { return n.size }

func newOverlayNode(st *unix.Stat_t) *OverlayNode {
	n := &OverlayNode{mode: st.Mode, times: [2]unix.Timespec{st.Atim, st.Mtim}, size: st.Size}
	if n.Dir() {
		n.below = map[string]*OverlayNode{}
	}
	return n
}

// overlayScan is one look through an overlay.
type overlayScan struct {
	top     int
	left    int64
	listing []byte
	faults  faults
}

// directory looks through a directory and what is below. It is opened from the top, and closed before the next is opened,
// so that a deep overlay needs no more descriptors than a flat one.
func (s *overlayScan) directory(ctx context.Context, path string, n *OverlayNode) {
	fd, err := fsys.OpenBeneath(s.top, path, openDir, 0)
	if err != nil {
		s.faults.add(overlayFault(path, err))
		return
	}
	s.list(ctx, fd, path, n)
	unix.Close(fd)
	s.below(ctx, path, n)
}

func (s *overlayScan) below(ctx context.Context, path string, n *OverlayNode) {
	for name, child := range n.All() {
		if child.Dir() && ctx.Err() == nil {
			s.directory(ctx, filepath.Join(path, name), child)
		}
	}
}

// list fills in what is in an open directory.
func (s *overlayScan) list(ctx context.Context, fd int, path string, n *OverlayNode) {
	for e, err := range entries(fd, s.listing) {
		if err == nil && ctx.Err() != nil {
			return
		}
		if s.left--; err == nil && s.left < 0 {
			err = fmt.Errorf("%w: the overlay has too many entries", ErrLimit)
		}
		if err != nil {
			s.faults.add(overlayFault(filepath.Join(path, e.name), err))
			return
		}
		s.entry(fd, filepath.Join(path, e.name), e.name, n)
	}
}

// entry adds one entry, if it may be one. The type that the listing says is not believed.
func (s *overlayScan) entry(fd int, path, name string, n *OverlayNode) {
	st, err := fsys.Lstat(fd, name)
	if err != nil {
		s.faults.add(overlayFault(path, err))
		return
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR, unix.S_IFREG:
		n.below[name] = newOverlayNode(&st)
	default:
		s.faults.add(&EntryError{Op: "overlay", Path: path, Kind: fsys.Kind(st.Mode), Err: ErrOverlay})
	}
}
