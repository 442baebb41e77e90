// SPDX-License-Identifier: Apache-2.0

package scratch

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
)

// window is the number of directories on the way down that are held open. Those above are closed and found again through
// "..", which is believed only if it leads to the very directory that was left.
const window = 32

// dir is a directory that is being copied.
type dir struct {
	parent   *dir
	name     string
	depth    int
	rule     *rule
	over     *OverlayNode // what the overlay has here, nil: nothing
	bare     bool         // only the overlay has it: there is no source to open
	readOnly bool

	src, dst     int // descriptors; -1 while closed
	srcID, dstID fileID
	mode         uint32
	times        [2]unix.Timespec
	pending      sync.WaitGroup // files that still need src and dst
}

// openTop opens both ends and checks the destination.
func openTop(src, dst string) (*dir, error) {
	d := &dir{name: ".", src: -1, dst: -1}
	var err error
	if d.src, err = openat(unix.AT_FDCWD, src, openDir&^unix.O_NOFOLLOW, 0); err != nil {
		return nil, &os.PathError{Op: "open", Path: src, Err: err}
	}
	if d.dst, err = openat(unix.AT_FDCWD, dst, openDir, 0); err != nil {
		d.close()
		return nil, fmt.Errorf("%w: %w", ErrDestination, &os.PathError{Op: "open", Path: dst, Err: err})
	}
	if err = d.look(); err == nil {
		err = fit(d.dst)
	}
	if err != nil {
		d.close()
		return nil, fmt.Errorf("%q: %w", dst, err)
	}
	return d, nil
}

// fit demands an empty directory that nobody but the caller can write: names made in it must stay what they are.
func fit(fd int) error {
	st, err := fsys.Fstat(fd)
	switch {
	case err != nil:
		return err
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%w: it belongs to uid %d, not to the caller", ErrDestination, st.Uid)
	case st.Mode&0o022 != 0:
		return fmt.Errorf("%w: mode %#o lets others write; make it 0700", ErrDestination, st.Mode&0o7777)
	}
	for e, err := range entries(fd, make([]byte, 4<<10)) {
		if err != nil {
			return err
		}
		return fmt.Errorf("%w: it is not empty, it holds %q", ErrDestination, e.name)
	}
	return nil
}

// look records identity, mode and time of an open directory.
func (d *dir) look() error {
	if d.dst >= 0 { // else it is packed
		out, err := fsys.Fstat(d.dst)
		if err != nil {
			return err
		}
		d.dstID = idOf(&out)
	}
	if d.bare {
		d.mode, d.times = d.over.mode&kept, d.over.times
		return nil
	}
	in, err := fsys.Fstat(d.src)
	if err != nil {
		return err
	}
	d.srcID = idOf(&in)
	d.mode, d.times = in.Mode&kept, [2]unix.Timespec{in.Atim, in.Mtim}
	return nil
}

// enter opens the directory name of d and makes its copy, with mode 0700 until it is finished.
func (c *copier) enter(d *dir, name string) (*dir, error) {
	rule := d.rule.child(name)
	child := &dir{
		parent: d, name: name, depth: d.depth + 1, rule: rule, over: d.over.Child(name), bare: d.bare, src: -1, dst: -1,
		readOnly: d.readOnly || rule != nil && rule.readOnly,
	}
	err := child.open()
	if err == nil {
		err = c.make(child)
	}
	if err == nil {
		err = child.look()
	}
	if err == nil && !child.bare && child.srcID == c.target {
		err = fmt.Errorf("%w: it lies inside the source", ErrDestination)
	}
	if err != nil {
		child.close()
		return nil, err
	}
	c.dirs.Add(1)
	return child, nil
}

// open opens the source of a directory, if it has one.
func (d *dir) open() (err error) {
	if !d.bare {
		d.src, err = openat(d.parent.src, d.name, openDir, 0)
	}
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP:
		if d.over == nil {
			return err
		}
		d.bare = true // nothing there, or something that the overlay's directory replaces
	default:
		return err
	}
	return nil
}

// make makes the copy of a directory.
func (c *copier) make(d *dir) (err error) {
	if c.packed != nil {
		return c.packed.enter(d.name)
	}
	if err = unix.Mkdirat(d.parent.dst, d.name, 0o700); err != nil {
		return duplicate(err)
	}
	d.dst, err = openat(d.parent.dst, d.name, openDir, 0)
	return err
}

// duplicate explains EEXIST in a directory that was empty: the source listed one name twice.
func duplicate(err error) error {
	if err == unix.EEXIST {
		return ErrChanged
	}
	return err
}

// finish gives a directory the times, mode and owner of the original, when nothing will be made in it any more. The owner
// comes last: until then everything belongs to the caller, who needs no privilege for the rest.
func (c *copier) finish(d *dir) error {
	mode, owned := d.mode, false
	switch {
	case c.opts.Owner == nil:
	case d.readOnly:
		mode = readable(mode)
	case d.rule != nil && d.rule.guard:
		mode = unix.S_ISVTX | 0o770 | mode&0o005
	default:
		owned = true
	}
	if c.packed != nil {
		return c.packed.leave(mode, owned, d.times[1])
	}
	if err := unix.UtimesNanoAt(d.dst, ".", d.times[:], 0); err != nil {
		return err
	}
	if err := unix.Fchmod(d.dst, mode); err != nil {
		return err
	}
	if c.opts.Owner == nil {
		return nil
	}
	return unix.Fchown(d.dst, c.newOwner(!owned), c.opts.Owner.GID)
}

// readable takes the write bits away and lets the group read and execute what the owner could.
func readable(mode uint32) uint32 { return mode&0o555 | mode&0o500>>3 }

// evictAncestor closes the directory that falls out of the window.
func (d *dir) evictAncestor() {
	a, below := d, d
	for range window {
		if below, a = a, a.parent; a == nil {
			return
		}
	}
	a.pending.Wait()
	if below.bare && !a.bare {
		closeFD(&a.dst) // the way up from below does not lead back to this source: it stays open
		return
	}
	a.close()
}

// restoreParent opens the directory above again if it was closed.
func (d *dir) restoreParent() (err error) {
	p := d.parent
	if p.dst >= 0 {
		return nil
	}
	if p.src < 0 && !p.bare {
		if p.src, err = reopen(d.src, p.srcID); err != nil {
			return err
		}
	}
	if d.dst >= 0 {
		p.dst, err = reopen(d.dst, p.dstID)
	}
	return err
}

func reopen(child int, want fileID) (int, error) {
	fd, err := openat(child, "..", openDir, 0)
	if err != nil {
		return -1, err
	}
	st, err := fsys.Fstat(fd)
	if err == nil && idOf(&st) != want {
		err = ErrChanged
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (d *dir) close() {
	closeFD(&d.src)
	closeFD(&d.dst)
}

func closeFD(fd *int) {
	if *fd >= 0 {
		unix.Close(*fd)
		*fd = -1
	}
}

// join returns the path of an entry of d below the top; an empty name means d itself.
func (d *dir) join(name string) string {
	var up []string
	for ; d.parent != nil; d = d.parent {
		up = append(up, d.name)
	}
	var b strings.Builder
	for i := len(up) - 1; i >= 0; i-- {
		b.WriteString(up[i] + "/")
	}
	if b.WriteString(name); b.Len() == 0 {
		return "."
	}
	return strings.TrimSuffix(b.String(), "/")
}
