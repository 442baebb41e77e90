// SPDX-License-Identifier: Apache-2.0

package scratch

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A packed tree is a row of items, each of which begins with one of these bytes. There are no paths in it, only names, and
// what is no directory, regular file or link cannot be said.
const (
	itemEnter = 'd' // name: a directory begins, in the one that began last
	itemLeave = 'u' // attributes of the directory that began last; that of the top is the end
	itemFile  = 'f' // name, attributes, then segments
	itemLink  = 'l' // name, target, owned

	segmentData = 's' // length, bytes
	segmentHole = 'h' // length
	segmentEnd  = 'e'
)

const (
	ownedBit   = 1 << 16 // in attributes, beside the mode
	maxName    = 255
	maxTarget  = unix.PathMax
	maxSegment = 64 << 10
	pageSize   = 4 << 10 // what every file of a tmpfs is rounded up to
)

// Pack writes the tree at src to w, for [Unpack] at another place: what [Copy] would copy, by the same rules. Owner must be
// given, and Sealed and Covered be empty: what is not sent needs no cover. Stats.Allocated is what the files take on a
// tmpfs. After an error w has got a part of a tree.
func Pack(ctx context.Context, src string, w io.Writer, o Options) (Stats, error) {
	rules, err := o.compile()
	switch {
	case err != nil:
		return Stats{}, err
	case o.Owner == nil || len(o.Sealed)+len(o.Covered) > 0:
		return Stats{}, fmt.Errorf("%w: a packed tree needs an Owner, and has no Sealed or Covered entries", ErrOptions)
	}
	top := &dir{name: ".", src: -1, dst: -1, rule: rules, readOnly: rules.readOnly}
	if top.src, err = openat(unix.AT_FDCWD, src, openDir&^unix.O_NOFOLLOW, 0); err != nil {
		return Stats{}, &os.PathError{Op: "open", Path: src, Err: err}
	}
	defer top.close()
	if err := top.look(); err != nil {
		return Stats{}, &os.PathError{Op: "stat", Path: src, Err: err}
	}
	c := &copier{opts: &o, self: os.Geteuid(), packed: &packer{w: bufio.NewWriterSize(w, maxSegment)}}
	if o.Overlay != "" {
		if c.overlay, err = OpenOverlay(ctx, o.Overlay, o.MaxFiles); err != nil {
			return Stats{}, err
		}
		defer c.overlay.Close()
		top.over = c.overlay.Root()
	}
	ctx, c.stop = context.WithCancelCause(ctx)
	defer c.stop(nil)
	(&worker{copier: c}).tree(ctx, top)
	if ctx.Err() == nil && c.faults.count() == 0 {
		if err := c.packed.w.Flush(); err != nil {
			c.fatal(top, "", err)
		}
	}
	return c.outcome(ctx)
}

// packer writes items.
type packer struct {
	w   *bufio.Writer
	buf []byte
}

// item writes one; a failed write is remembered by w and comes up in the next one.
func (p *packer) item(kind byte, texts []string, numbers ...uint64) error {
	p.buf = append(p.buf[:0], kind)
	for _, t := range texts {
		p.buf = append(binary.AppendUvarint(p.buf, uint64(len(t))), t...)
	}
	for _, n := range numbers {
		p.buf = binary.AppendUvarint(p.buf, n)
	}
	_, err := p.w.Write(p.buf)
	return err
}

// attributes are mode, owner and time of modification.
func attributes(mode uint32, owned bool, mtime unix.Timespec) [3]uint64 {
	bits := uint64(mode)
	if owned {
		bits |= ownedBit
	}
	return [3]uint64{bits, uint64(mtime.Sec), uint64(mtime.Nsec)}
}

func (p *packer) enter(name string) error { return p.item(itemEnter, []string{name}) }

func (p *packer) leave(mode uint32, owned bool, mtime unix.Timespec) error {
	a := attributes(mode, owned, mtime)
	return p.item(itemLeave, nil, a[:]...)
}

func (p *packer) link(name, target string, owned bool) error {
	a := attributes(0, owned, unix.Timespec{})
	return p.item(itemLink, []string{name, target}, a[0])
}

// pack writes one regular file, as large as it was when st was taken or smaller, if it has shrunk.
func (w *worker) pack(ctx context.Context, name string, in int, st *unix.Stat_t, mode uint32, readOnly bool) error {
	a := attributes(mode, !readOnly, st.Mtim)
	if err := w.packed.item(itemFile, []string{name}, a[:]...); err != nil {
		return err
	}
	end := int64(0)
	if st.Blocks*512 >= st.Size {
		n, err := w.packSpan(ctx, in, 0, st.Size)
		if end = n; err != nil {
			return err
		}
	} else {
		for seg, err := range Segments(in, st.Size) {
			if err == nil {
				err = w.packHole(seg.Start - end)
			}
			if err == nil {
				end, err = w.packSpan(ctx, in, seg.Start, seg.End)
			}
			if err != nil {
				return err
			}
		}
		if err := w.packHole(st.Size - end); err != nil {
			return err
		}
		end = st.Size
	}
	w.files.Add(1)
	w.bytes.Add(end)
	return w.packed.item(segmentEnd, nil)
}

func (w *worker) packHole(n int64) error {
	if n <= 0 {
		return nil
	}
	return w.packed.item(segmentHole, nil, uint64(n))
}

// packSpan writes the bytes from off to end and returns where the file ended, if that was before.
func (w *worker) packSpan(ctx context.Context, in int, off, end int64) (int64, error) {
	if end > off {
		if err := w.charge(end - off); err != nil {
			return off, err
		}
		w.allocated.Add((end - off + pageSize - 1) / pageSize * pageSize)
	}
	buf := w.buffer()[:maxSegment]
	for off < end {
		if err := context.Cause(ctx); err != nil {
			return off, err
		}
		n, err := again(func() (int, error) { return unix.Pread(in, buf[:min(int64(len(buf)), end-off)], off) })
		if err != nil || n == 0 {
			return off, err
		}
		if err := w.packed.item(segmentData, nil, uint64(n)); err != nil {
			return off, err
		}
		if _, err := w.packed.w.Write(buf[:n]); err != nil {
			return off, err
		}
		off += int64(n)
	}
	return off, nil
}
