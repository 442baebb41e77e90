// SPDX-License-Identifier: Apache-2.0

package scratch

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
)

// Copy copies the tree at src into the directory dst, which must exist, be empty, belong to the caller and be writable
// for nobody else. A symbolic link as src itself is the caller's word and is followed; nothing below it is. It returns
// when all is copied, when ctx is done, or after the first error that makes going on pointless.
func Copy(ctx context.Context, src, dst string, o Options) (Stats, error) {
	rules, err := o.compile()
	if err != nil {
		return Stats{}, err
	}
	top, err := openTop(src, dst)
	if err != nil {
		return Stats{}, err
	}
	defer top.close()
	top.rule, top.readOnly = rules, rules.readOnly

	c := &copier{opts: &o, self: os.Geteuid(), target: top.dstID, jobs: make(chan job)}
	if o.Overlay != "" {
		if c.overlay, err = OpenOverlay(ctx, o.Overlay, o.MaxFiles); err != nil {
			return Stats{}, err
		}
		defer c.overlay.Close()
		top.over = c.overlay.Root()
	}
	ctx, c.stop = context.WithCancelCause(ctx)
	defer c.stop(nil)
	var helper sync.WaitGroup
	helper.Go(func() {
		w := &worker{copier: c}
		for j := range c.jobs {
			w.file(ctx, j)
			j.dir.pending.Done()
		}
	})
	w := &worker{copier: c}
	w.tree(ctx, top)
	close(c.jobs)
	helper.Wait()
	return c.outcome(ctx)
}

// copier is one copy. A walker reads directories and makes directories and links; files are done by the walker and by one
// helper, whoever is free: with two processors that is faster, and more workers would only queue for the same
// directory locks.
type copier struct {
	opts    *Options
	overlay *Overlay // nil: none
	packed  *packer  // where a tree goes that is packed; nil: to dst
	self    int
	target  fileID // the destination, to notice that it lies inside the source
	jobs    chan job
	stop    context.CancelCauseFunc

	faults  faults
	noClone atomic.Bool // the file systems cannot share blocks; asked once
	noRange atomic.Bool // the kernel cannot copy between them

	entries, files, dirs, links atomic.Int64
	charged, bytes, allocated   atomic.Int64
}

type job struct {
	dir      *dir
	name     string
	readOnly bool
	overlaid bool // the content is the overlay's
}

// worker is a copier with buffers of its own. A directory is listed to its end before another one is begun, so that one
// buffer for listings is enough.
type worker struct {
	*copier
	buf     []byte
	listing [32 << 10]byte
}

// buffer is allocated by the worker that needs it.
func (w *worker) buffer() []byte {
	if w.buf == nil {
		w.buf = make([]byte, 128<<10)
	}
	return w.buf
}

// outcome reports errors of entries first: they explain why the copy was stopped.
func (c *copier) outcome(ctx context.Context) (Stats, error) {
	s := Stats{
		Files: c.files.Load(), Dirs: c.dirs.Load(), Links: c.links.Load(),
		Bytes: c.bytes.Load(), Allocated: c.allocated.Load(),
	}
	if err := c.faults.err(); err != nil {
		return s, err
	}
	return s, context.Cause(ctx)
}

// fault records what is wrong with one entry. The walk goes on without copying, to name the others too.
func (c *copier) fault(d *dir, name string, err error) {
	c.faultKind(d, name, "", err)
}

func (c *copier) faultKind(d *dir, name, kind string, err error) {
	e := &EntryError{Op: "copy", Path: d.join(name), Kind: kind, Err: err}
	if !c.faults.add(e) {
		c.stop(e)
	}
}

// fatal records an error after which the walk makes no sense.
func (c *copier) fatal(d *dir, name string, err error) {
	c.fault(d, name, err)
	c.stop(err)
}

// admit counts an entry against MaxFiles.
func (c *copier) admit(d *dir, name string) bool {
	if c.entries.Add(1) > c.opts.MaxFiles {
		c.fatal(d, name, fmt.Errorf("%w: more than %d entries", ErrLimit, c.opts.MaxFiles))
		return false
	}
	return true
}

// charge counts bytes against MaxBytes before they are copied.
func (c *copier) charge(n int64) error {
	if c.charged.Add(n) > c.opts.MaxBytes {
		return fmt.Errorf("%w: more than %d bytes", ErrLimit, c.opts.MaxBytes)
	}
	return nil
}

// tree copies what is in d and below. The recursion costs a few hundred bytes of a growing stack per level and no
// descriptor beyond those of the open window.
func (w *worker) tree(ctx context.Context, d *dir) {
	below := w.content(ctx, d)
	for _, name := range below {
		if ctx.Err() != nil {
			break
		}
		w.descend(ctx, d, name)
	}
	d.pending.Wait()
	if ctx.Err() != nil {
		return
	}
	if err := w.finish(d); err != nil {
		w.fatal(d, "", err)
	}
}

func (w *worker) descend(ctx context.Context, d *dir, name string) {
	child, err := w.enter(d, name)
	switch {
	case err == unix.ENOENT: // removed since it was listed
		return
	case err == unix.ELOOP || err == unix.ENOTDIR:
		w.fault(d, name, ErrChanged)
		return
	case err != nil:
		w.fault(d, name, err)
		return
	}
	defer child.close()
	child.evictAncestor()
	w.tree(ctx, child)
	if ctx.Err() == nil {
		if err := child.restoreParent(); err != nil {
			w.fatal(d, "", err)
		}
	}
}

// content copies the files and links of d and returns the names of its directories.
func (w *worker) content(ctx context.Context, d *dir) (below []string) {
	below = w.overlaid(ctx, d)
	if d.bare {
		return below
	}
	for e, err := range entries(d.src, w.listing[:]) {
		if err != nil {
			w.fault(d, "", err)
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		rule := d.rule.child(e.name)
		if w.omits(e.name, rule) || d.over.Child(e.name) != nil { // what stands in the overlay is done already, or joined
			continue
		}
		if !w.admit(d, e.name) {
			return nil
		}
		switch typ := w.typeOf(d, e, rule != nil); {
		case typ == 0: // reported, or gone
		case rule != nil && rule.sealed:
			w.seal(d, e.name, typ)
		case rule != nil && typ == unix.S_IFLNK:
			w.fault(d, e.name, ErrThroughLink)
		case typ == unix.S_IFDIR:
			below = append(below, e.name)
		case typ == unix.S_IFLNK:
			w.link(d, e.name, d.readOnly)
		case typ == unix.S_IFREG:
			w.assign(ctx, job{dir: d, name: e.name, readOnly: d.readOnly || rule != nil && rule.readOnly})
		default:
			w.faultKind(d, e.name, fsys.Kind(typ), ErrSpecial)
		}
	}
	return below
}

// overlaid copies the overlay's files of d and returns the names of its directories. Whatever the source has under these
// names is not even looked at.
func (w *worker) overlaid(ctx context.Context, d *dir) (below []string) {
	for name, n := range d.over.All() {
		rule := d.rule.child(name)
		if w.omits(name, rule) {
			continue
		}
		if ctx.Err() != nil || !w.admit(d, name) {
			return nil
		}
		switch {
		case rule != nil && rule.sealed && n.Dir():
			w.seal(d, name, unix.S_IFDIR)
		case rule != nil && rule.sealed:
			w.seal(d, name, unix.S_IFREG)
		case n.Dir():
			below = append(below, name)
		default:
			readOnly := d.readOnly || rule != nil && rule.readOnly
			w.assign(ctx, job{dir: d, name: name, readOnly: readOnly, overlaid: true})
		}
	}
	return below
}

// omits reports whether an entry is left out.
func (c *copier) omits(name string, r *rule) bool {
	return slices.Contains(c.opts.OmitNames, name) || r != nil && r.omit
}

// typeOf returns the type of an entry: what the listing says, or what a look at it says where the listing does not know or
// a rule depends on it. It is 0 if there is nothing to copy.
func (w *worker) typeOf(d *dir, e entry, exact bool) uint32 {
	if e.typ != 0 && !exact {
		return e.typ
	}
	st, err := fsys.Lstat(d.src, e.name)
	if err != nil {
		if err != unix.ENOENT {
			w.fault(d, e.name, err)
		}
		return 0
	}
	return st.Mode & unix.S_IFMT
}

// assign gives a file to the helper if it waits for one, else copies it here.
func (w *worker) assign(ctx context.Context, j job) {
	j.dir.pending.Add(1)
	select {
	case w.jobs <- j:
	default:
		w.file(ctx, j)
		j.dir.pending.Done()
	}
}
