// SPDX-License-Identifier: Apache-2.0

package scratch

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
)

// file copies one regular file.
func (w *worker) file(ctx context.Context, j job) {
	if ctx.Err() != nil {
		return
	}
	d, name := j.dir, j.name
	in, err := w.open(j)
	if err != nil {
		w.unopened(j, err)
		return
	}
	defer unix.Close(in)
	st, err := fsys.Fstat(in)
	if err != nil {
		w.fault(d, name, err)
		return
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		w.exchanged(j, st.Mode)
		return
	}
	if w.faults.count() > 0 {
		return // the copy is refused already, this walk only looks for more
	}
	if err := w.regular(ctx, d, name, in, &st, j.readOnly); err != nil && ctx.Err() == nil {
		w.fatal(d, name, err) // no space, a limit: not this entry's fault alone
	}
}

// open opens a file where it comes from.
func (w *worker) open(j job) (int, error) {
	if j.overlaid {
		return w.overlay.open(j.dir.join(j.name))
	}
	return openat(j.dir.src, j.name, openFile, 0)
}

// unopened sorts out why an entry that was listed as a regular file cannot be opened.
func (w *worker) unopened(j job, err error) {
	d, name := j.dir, j.name
	if j.overlaid { // nothing may take part in a copy but what was found, and all of it
		w.faults.add(overlayFault(d.join(name), err))
		return
	}
	switch err {
	case unix.ENOENT: // removed since it was listed
	case unix.ELOOP:
		w.fault(d, name, ErrChanged)
	case unix.ENXIO, unix.ENODEV: // a socket, or a device without a driver
		w.faultKind(d, name, "socket or device", ErrSpecial)
	default:
		w.fault(d, name, err)
	}
}

// exchanged reports an entry that was listed as a regular file and is none.
func (w *worker) exchanged(j job, mode uint32) {
	switch {
	case j.overlaid:
		w.faults.add(overlayFault(j.dir.join(j.name), ErrChanged))
		return
	case mode&unix.S_IFMT == unix.S_IFDIR:
		w.fault(j.dir, j.name, ErrChanged)
		return
	}
	w.faultKind(j.dir, j.name, fsys.Kind(mode), ErrSpecial)
}

func (w *worker) regular(ctx context.Context, d *dir, name string, in int, st *unix.Stat_t, readOnly bool) error {
	mode := st.Mode & kept
	if readOnly && w.opts.Owner != nil {
		mode = readable(mode)
	}
	if w.packed != nil {
		return w.pack(ctx, name, in, st, mode, readOnly)
	}
	const flags = unix.O_RDWR | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	out, err := openat(d.dst, name, flags, mode)
	if err != nil {
		return duplicate(err)
	}
	defer unix.Close(out)
	if err := w.data(ctx, in, out, st); err != nil {
		return err
	}
	got, err := fsys.Fstat(out)
	if err != nil {
		return err
	}
	w.files.Add(1)
	w.bytes.Add(got.Size)
	w.allocated.Add(got.Blocks * 512)
	times := [2]unix.Timespec{st.Atim, st.Mtim}
	if err := unix.UtimesNanoAt(d.dst, name, times[:], unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if got.Mode&0o7777 != mode { // the umask, or a default access control list, took bits away
		if err := unix.Fchmod(out, mode); err != nil {
			return err
		}
	}
	if w.opts.Owner == nil {
		return nil
	}
	return unix.Fchown(out, w.newOwner(readOnly), w.opts.Owner.GID)
}

// newOwner returns the user that gets an entry.
func (c *copier) newOwner(readOnly bool) int {
	if readOnly {
		return c.self
	}
	return c.opts.Owner.UID
}

// link copies a symbolic link, target word for word.
func (c *copier) link(d *dir, name string, readOnly bool) {
	buf := make([]byte, unix.PathMax+1)
	n, err := unix.Readlinkat(d.src, name, buf)
	switch {
	case err == unix.ENOENT:
		return
	case err == unix.EINVAL:
		c.fault(d, name, ErrChanged)
		return
	case err != nil:
		c.fault(d, name, err)
		return
	}
	if c.faults.count() > 0 {
		return
	}
	if err := c.makeLink(d, name, string(buf[:n]), readOnly); err != nil {
		c.fatal(d, name, err)
		return
	}
	c.links.Add(1)
}

func (c *copier) makeLink(d *dir, name, target string, readOnly bool) error {
	if c.packed != nil {
		return c.packed.link(name, target, !readOnly)
	}
	if err := unix.Symlinkat(target, d.dst, name); err != nil {
		return duplicate(err)
	}
	if c.opts.Owner == nil {
		return nil
	}
	return unix.Fchownat(d.dst, name, c.newOwner(readOnly), c.opts.Owner.GID, unix.AT_SYMLINK_NOFOLLOW)
}

// seal puts an empty stand-in of the caller without permissions where a sealed entry was.
func (c *copier) seal(d *dir, name string, typ uint32) {
	if c.packed != nil {
		c.fatal(d, name, fmt.Errorf("%w: a packed tree has no sealed entries; omit it", ErrOptions))
		return
	}
	if typ == unix.S_IFDIR {
		if err := unix.Mkdirat(d.dst, name, 0); err != nil {
			c.fatal(d, name, duplicate(err))
			return
		}
		c.dirs.Add(1)
		return
	}
	fd, err := openat(d.dst, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		c.fatal(d, name, duplicate(err))
		return
	}
	unix.Close(fd)
	c.files.Add(1)
}
