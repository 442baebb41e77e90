// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/rollback/internal/object"
)

const (
	smallFile  = 256 << 10 // a larger file borrows a buffer, so that memory does not grow with the workers
	bigBuffers = 2
	shared     = 16 // a directory with more files to read is offered to idle workers
)

// vouches reports whether the cache may answer for the bytes of a file: the stat is the same, the record is not racy,
// and what it names can be read back. A cache never proves that the store has something.
func (w *worker) vouches(n *Node, rec record) bool {
	return rec.sameStat(n) && w.trust.old(rec) && w.present(n, rec)
}

func (w *worker) present(n *Node, rec record) bool {
	key := rec.key()
	if (key.Type == object.Chunks) != (n.Size > object.MaxBlob) || key.Type != object.Blob && key.Type != object.Chunks {
		return false
	}
	if key.Type == object.Chunks {
		return w.chunksPresent(n, key, rec.chunks())
	}
	return w.assured || w.o.Sink.Has(key)
}

// chunksPresent also keeps the list for the next cache.
func (w *worker) chunksPresent(n *Node, key object.Key, list []byte) bool {
	chunks, err := object.DecodeChunks(list)
	if err != nil {
		return false
	}
	if !w.assured {
		if !w.o.Sink.Has(key) {
			return false
		}
		for _, c := range chunks {
			if !c.Hole && !w.o.Sink.Has(object.Key{Type: object.Blob, Hash: c.Hash}) {
				return false
			}
		}
	}
	w.keepChunks(n, list)
	return true
}

func (w *worker) keepChunks(n *Node, list []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.chunks[n] = list
}

// due reports whether it is the file's turn to be read although the cache vouches for it.
func (w *worker) due(n *Node) bool {
	if w.o.Scrub <= 0 {
		return false
	}
	scrub := uint64(w.o.Scrub)
	return (n.Stat.Ino*0x9E3779B97F4A7C15>>32)%scrub == w.turn%scrub
}

// readAll reads the files that look has found no answer for.
func (w *worker) readAll(fd int, dir *Node) error {
	if len(w.reads) == 0 {
		return nil
	}
	j := &job{fd: fd, dir: dir, files: w.reads}
	if len(w.reads) > shared && w.o.Workers > 1 {
		w.pool.offer(j)
		w.help(j)
		w.pool.withdraw(j)
	} else {
		w.help(j)
	}
	w.bytes += j.grown.Load()
	if j.again.Load() {
		return errStale
	}
	for _, l := range j.left {
		w.leave(l.node, l.why, l.detail)
	}
	return nil
}

// help reads files of a job until none is left.
func (w *worker) help(j *job) {
	for !w.stopped.Load() && !j.again.Load() {
		i := j.next.Add(1) - 1
		if i >= int64(len(j.files)) {
			return
		}
		w.fill(j, j.files[i])
	}
}

// fill reads one file and compares it with what the cache said.
func (w *worker) fill(j *job, n *Node) {
	var rec record
	if n.cached != 0 {
		rec = w.cache.record(n.cached)
	}
	scrub := n.Data
	err := w.read(j, n)
	switch {
	case err == errStale:
		j.again.Store(true)
		return
	case err != nil:
		w.unread(j, n, err)
		return
	}
	w.scanner.read.Add(1)
	w.readBytes.Add(n.Size)
	switch {
	case scrub == object.Key{}:
		w.rewritten.Store(true)
	case scrub == n.Data:
		w.scrubbed.Add(1)
	default:
		w.scrubbed.Add(1)
		w.rewritten.Store(true)
		w.mu.Lock()
		w.drifted = append(w.drifted, n.Path())
		w.mu.Unlock()
	}
	// Helpers of one directory work at the same time: they mark their own nodes only.
	n.changed = rec == nil || rec.kind() != object.File || rec.key() != n.Data || !rec.sameAttributes(n) ||
		string(rec.xattrs()) != string(appendXattrs(nil, n.Xattrs))
}

// unread sorts out why a file could not be read.
func (w *worker) unread(j *job, n *Node, err error) {
	switch {
	case err == errUnstable && w.o.Tolerate:
		j.leave(n, Unstable, "")
	case err == errUnstable:
		w.failed.Store(true)
		add(&w.faults, &w.faults.unstable, n.Path())
	case w.o.Tolerate && !errors.As(err, new(*sinkError)):
		j.leave(n, Unreadable, err.Error())
	default:
		w.fail(n, "read", err)
	}
}

var errUnstable = errors.New("kept changing")

// sinkError is a failure of the store, which no tolerance covers.
type sinkError struct{ error }

func (e *sinkError) Unwrap() error { return e.error }

// read fills in the data of a file. It must be the regular file that was listed; and it must be the same before and
// after it was read, or it is read again.
func (w *worker) read(j *job, n *Node) error {
	fd, err := open(j.fd, n.Name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	switch err {
	case nil:
	case unix.ENOENT, unix.ELOOP, unix.ENXIO, unix.ENODEV, unix.ESTALE, unix.EXDEV:
		return errStale
	default:
		return err
	}
	defer unix.Close(fd)
	var before, after unix.Statx_t
	if err := fstat(fd, &before); err != nil {
		return err
	}
	if !regular(&before) || !n.sameInode(&before) || device(&before) != n.Stat.Dev {
		return errStale
	}
	for try := 1; try <= maxTries; try++ {
		if !n.unmoved(&before) && !w.resize(j, n, &before) {
			return errStale // more than the limits allow now; the new listing says so
		}
		if w.failed.Load() {
			return nil // the scan fails anyway: only whether the file can be opened is of interest
		}
		key, size, err := w.bytesOf(fd, n)
		if err != nil {
			return err
		}
		if err := w.fileAttributes(fd, n); err != nil {
			return err
		}
		if err := fstat(fd, &after); err != nil {
			return err
		}
		if size == n.Size && n.unmoved(&after) {
			n.Data = key
			return nil
		}
		before = after
	}
	return errUnstable
}

// resize takes over the stat of a file that has changed since it was listed, and counts the difference.
func (w *worker) resize(j *job, n *Node, st *unix.Statx_t) bool {
	more := int64(st.Size) - n.Size
	if int64(st.Size) > w.o.Limits.FileSize || w.scanner.bytes.Load()+more > w.o.Limits.Bytes {
		return false
	}
	w.scanner.bytes.Add(more)
	j.grown.Add(more)
	n.set(st, w.o.Owner)
	return true
}

// bytesOf stores the bytes of a file and returns how many there were, which is one more than the file was said to have
// if it has grown.
func (w *worker) bytesOf(fd int, n *Node) (object.Key, int64, error) {
	if n.Size > object.MaxBlob {
		return w.chunked(fd, n)
	}
	buf, giveBack := w.buffer(int(n.Size) + 1)
	defer giveBack()
	size := 0
	// The file ends where a read is short of what was asked for; that it ends there and not later the second stat says.
	for asked := true; asked && size < len(buf) || size < int(n.Size); {
		got, err := pread(fd, buf[size:], int64(size))
		if err != nil {
			return object.Key{}, 0, err
		}
		if got == 0 {
			break
		}
		size += got
		asked = size > int(n.Size)
	}
	if int64(size) != n.Size {
		return object.Key{}, int64(size), nil
	}
	key, err := w.put(object.Blob, buf[:size])
	return key, int64(size), err
}

func pread(fd int, buf []byte, off int64) (n int, err error) {
	err = fsys.Retry(func() (err error) {
		n, err = unix.Pread(fd, buf, off)
		return err
	})
	return n, err
}

func (s *scanner) put(t object.Type, raw []byte) (object.Key, error) {
	if s.o.Sink == nil {
		return object.Sum(t, raw), nil
	}
	key, err := s.o.Sink.Add(t, raw)
	if err != nil {
		return key, &sinkError{err}
	}
	return key, nil
}

// buffer returns size bytes, of the worker's own buffer or of one of the few large ones.
func (w *worker) buffer(size int) ([]byte, func()) {
	if size <= smallFile {
		if len(w.buf) < size {
			w.buf = make([]byte, max(size, w.least))
		}
		return w.buf[:size], func() {}
	}
	buf := <-w.big
	if cap(buf) < size {
		buf = nil // for the collector, before the next one is made
		buf = make([]byte, size)
	}
	return buf[:size], func() { w.big <- buf[:cap(buf)] }
}
