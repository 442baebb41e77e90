// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/rollback/internal/object"
	"github.com/evoseal/containment/rollback/internal/scan"
)

// parallel calls do for 0 to n-1 from several goroutines and stops at the first error or at the end of ctx.
func parallel(ctx context.Context, workers, n int, do func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Bool
	var once sync.Once
	var first error
	work := func() {
		for !failed.Load() {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			err := ctx.Err()
			if err == nil {
				err = do(i)
			}
			if err != nil {
				failed.Store(true)
				once.Do(func() { first = err })
			}
		}
	}
	var others sync.WaitGroup
	for range min(workers, n) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return first
}

// assign gives every operation that needs one a slot of the journal.
func (r *restorer) assign(p *plan, known func(path string, was *scan.Node) known) {
	for i := range p.remove {
		op := &p.remove[i]
		if op.do == doTake {
			op.slot = len(r.journal.Slots)
			r.journal.Slots = append(r.journal.Slots, slot{Path: op.path, Was: known(op.path, op.was), Foreign: op.foreign})
		}
	}
	for i := range p.put {
		op := &p.put[i]
		op.slot = len(r.journal.Slots)
		r.journal.Slots = append(r.journal.Slots,
			slot{Path: op.path, Was: known(op.path, op.was), Now: knownOf(&op.want)})
	}
	for _, o := range p.open {
		if o.Back {
			r.journal.Opened = append(r.journal.Opened, o)
		}
	}
}

// stage makes everything that will be put in place, durable and with its final attributes, without touching a name that
// the checkpoint knows. All bytes are read from the store and found right here, before the restore is committed.
func (r *restorer) stage(ctx context.Context, p *plan) error {
	open := make([]int, 0, manySyncs)
	var mu sync.Mutex
	defer func() {
		for _, fd := range open {
			unix.Close(fd)
		}
	}()
	keep := r.s.sync() && len(p.put) <= manySyncs
	first, rest := splitGroups(p.put)
	err := parallel(ctx, r.s.options.Workers, len(first), func(i int) error {
		fd, err := r.stageEntry(&p.put[first[i]])
		if fd < 0 {
			return err
		}
		if !keep || err != nil {
			unix.Close(fd)
			return err
		}
		fsys.StartWriteout(fd)
		mu.Lock()
		defer mu.Unlock()
		open = append(open, fd)
		return nil
	})
	if err != nil {
		return err
	}
	for i, leader := range rest {
		if err := r.stageLink(strconv.Itoa(p.put[leader].slot), strconv.Itoa(p.put[i].slot)); err != nil {
			return fmt.Errorf("stage %q: %w", p.put[i].path, err)
		}
	}
	r.step("staged")
	if !r.s.sync() {
		return nil
	}
	if !keep {
		return r.syncFS(r.staging)
	}
	return r.syncAll(append(open, r.staging, r.target.fd))
}

// splitGroups tells the entries that are staged by themselves from further names of a group, with the one that stands
// for it.
func splitGroups(puts []operation) (first []int, rest map[int]int) {
	rest, leaders := map[int]int{}, map[string]int{}
	for i := range puts {
		op := &puts[i]
		if op.want.Group == "" || op.partner != "" {
			first = append(first, i)
		} else if leader, ok := leaders[op.want.Group]; ok {
			rest[i] = leader
		} else {
			leaders[op.want.Group] = i
			first = append(first, i)
		}
	}
	return first, rest
}

// stageEntry makes one entry in its slot. A file's descriptor is returned open.
func (r *restorer) stageEntry(op *operation) (fd int, err error) {
	name := strconv.Itoa(op.slot)
	switch {
	case op.want.Kind == object.Link:
		fd, err = -1, r.stageSymlink(op, name)
	case op.partner != "":
		fd, err = -1, r.stagePartner(op, name)
	default:
		fd, err = r.stageFile(op, name)
	}
	if err != nil {
		err = fmt.Errorf("stage %q: %w", op.path, err)
	}
	return fd, err
}

// stageFile creates the file for the caller alone, whatever the umask, and gives it its attributes when it is whole.
func (r *restorer) stageFile(op *operation, name string) (int, error) {
	if err := r.s.try("create"); err != nil {
		return -1, err
	}
	fd, err := r.createBeside(op, name)
	if err != nil {
		fd, err = fsys.OpenBeneath(r.staging, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
	}
	if err != nil {
		return -1, err
	}
	if err = r.content(fd, op); err == nil {
		err = r.setAttributes(fd, op)
	}
	if err == nil {
		err = r.keeps(fd, op)
	}
	return fd, err
}

// createBeside makes the file of a slot without a name, in the directory in which it will stand, and then gives it the
// name in staging. File systems choose the place of an inode by its directory: thousands in one are far from their
// neighbours, and ext4 needs up to a millisecond for each to find room. A file without a name changes nothing in the
// directory. Any error means that staging itself has to do, for instance because the directory does not exist yet.
func (r *restorer) createBeside(op *operation, name string) (int, error) {
	dir, _, err := r.parent(op.path)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	fd, err := unix.Openat(dir, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return -1, err
	}
	dropACL(fd) // what files in this directory inherit is no part of the checkpoint
	err = fsys.Retry(func() error {
		return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), r.staging, name, unix.AT_SYMLINK_FOLLOW)
	})
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// content writes the bytes of a file.
func (r *restorer) content(fd int, op *operation) error {
	data, err := r.s.object(op.want.Data)
	if err != nil {
		return err
	}
	if op.want.Data.Type == object.Blob {
		if int64(len(data)) != op.want.Size {
			return r.wrongSize(op, int64(len(data)))
		}
		return r.write(fd, data, 0)
	}
	chunks, err := object.DecodeChunks(data)
	if err != nil {
		return &CorruptError{ID: r.id, Object: op.want.Data.String(), Why: err.Error()}
	}
	var at int64
	for _, c := range chunks {
		if !c.Hole {
			piece, err := r.s.object(object.Key{Type: object.Blob, Hash: c.Hash})
			if err != nil {
				return err
			}
			if int64(len(piece)) != c.Len {
				return r.wrongSize(op, at+int64(len(piece)))
			}
			if err := r.write(fd, piece, at); err != nil {
				return err
			}
		}
		at += c.Len
	}
	if at != op.want.Size {
		return r.wrongSize(op, at)
	}
	return fsys.Retry(func() error { return unix.Ftruncate(fd, at) })
}

func (r *restorer) wrongSize(op *operation, got int64) error {
	return &CorruptError{ID: r.id, Object: op.want.Data.String(),
		Why: fmt.Sprintf("%d bytes where %q has %d", got, op.path, op.want.Size)}
}

func (r *restorer) write(fd int, data []byte, at int64) error {
	for len(data) > 0 {
		if err := r.s.try("write"); err != nil {
			return err
		}
		n, err := unix.Pwrite(fd, data, at)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		data, at = data[n:], at+int64(n)
	}
	return nil
}

func (r *restorer) stageSymlink(op *operation, name string) error {
	if err := r.s.try("create"); err != nil {
		return err
	}
	if err := fsys.Retry(func() error { return unix.Symlinkat(op.want.Target, r.staging, name) }); err != nil {
		return err
	}
	fd, err := fsys.OpenBeneath(r.staging, name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := r.setAttributes(fd, op); err != nil {
		return err
	}
	return r.keeps(fd, op)
}

// stagePartner makes the slot another name of a file that stays in the tree. If that is no longer the file that was
// scanned, the entry gets a file of its own, and the comparison after the apply puts the group right.
func (r *restorer) stagePartner(op *operation, name string) error {
	dir, base, err := r.parent(op.partner)
	if err == nil {
		defer unix.Close(dir)
		err = r.s.try("link")
	}
	if err == nil {
		err = fsys.Retry(func() error { return unix.Linkat(dir, base, r.staging, name, 0) })
	}
	if err == nil {
		st, statErr := fsys.Lstat(r.staging, name)
		if statErr == nil && st.Ino == op.partnerIno && st.Mode&unix.S_IFMT == unix.S_IFREG {
			return nil
		}
		err = errors.Join(statErr, fsys.Retry(func() error { return unix.Unlinkat(r.staging, name, 0) }))
	}
	if err != nil && !moved(err) {
		return err
	}
	fd, err := r.stageFile(op, name)
	if fd >= 0 {
		unix.Close(fd)
	}
	return err
}

func (r *restorer) stageLink(from, to string) error {
	if err := r.s.try("link"); err != nil {
		return err
	}
	return fsys.Retry(func() error { return unix.Linkat(r.staging, from, r.staging, to, 0) })
}
