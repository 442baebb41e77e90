// SPDX-License-Identifier: Apache-2.0

package scratch

import (
	"context"
	"iter"

	"golang.org/x/sys/unix"
)

// chunk is the number of bytes between two looks at ctx and at the limit.
const chunk = 4 << 20

// data copies the content of in, as large as it was when st was taken or smaller, if it has shrunk.
func (w *worker) data(ctx context.Context, in, out int, st *unix.Stat_t) error {
	if st.Size == 0 {
		return nil
	}
	if done, err := w.clone(in, out, st); done || err != nil {
		return err
	}
	if st.Blocks*512 >= st.Size { // without a hole, most files, one call less
		_, err := w.span(ctx, in, out, 0, st.Size)
		return err
	}
	for seg, err := range Segments(in, st.Size) {
		if err != nil {
			return err
		}
		if short, err := w.span(ctx, in, out, seg.Start, seg.End); short || err != nil {
			return err
		}
	}
	return unix.Ftruncate(out, st.Size) // a hole at the end has no data to be written
}

// clone asks the file system to share the blocks.
func (w *worker) clone(in, out int, st *unix.Stat_t) (bool, error) {
	if w.noClone.Load() {
		return false, nil
	}
	if err := w.charge(min(st.Size, st.Blocks*512)); err != nil {
		return false, err
	}
	_, err := again(func() (int, error) { return 0, unix.IoctlFileClone(out, in) })
	if err == nil {
		return true, nil
	}
	w.charged.Add(-min(st.Size, st.Blocks*512))
	switch err {
	case unix.EOPNOTSUPP, unix.EXDEV, unix.EINVAL, unix.ENOTTY, unix.ENOSYS:
		w.noClone.Store(true)
	}
	return false, nil // whatever else was wrong, copying says it better
}

// span copies [off, end) and reports whether the file ended before.
func (w *worker) span(ctx context.Context, in, out int, off, end int64) (short bool, err error) {
	for off < end {
		if err := context.Cause(ctx); err != nil {
			return false, err
		}
		size := min(end-off, chunk)
		if err := w.charge(size); err != nil {
			return false, err
		}
		n, err := w.move(in, out, off, int(size))
		if err != nil {
			return false, err
		}
		if off += int64(n); int64(n) < size {
			return true, nil
		}
	}
	return false, nil
}

// move copies size bytes at off to the same place, fewer only at the end of the file.
func (w *worker) move(in, out int, off int64, size int) (int, error) {
	done := 0
	for done < size && !w.noRange.Load() {
		from, to := off+int64(done), off+int64(done)
		n, err := again(func() (int, error) { return unix.CopyFileRange(in, &from, out, &to, size-done, 0) })
		switch err {
		case nil:
		case unix.EXDEV, unix.EINVAL, unix.EOPNOTSUPP, unix.ENOSYS, unix.EPERM:
			w.noRange.Store(true)
		default:
			return done, err
		}
		if n <= 0 {
			break // the end, or a file system that only claims it: reading tells
		}
		done += n
	}
	for done < size {
		n, err := w.readWrite(in, out, off+int64(done), size-done)
		if done += n; n == 0 || err != nil {
			return done, err
		}
	}
	return done, nil
}

// readWrite moves at most one buffer through this process.
func (w *worker) readWrite(in, out int, off int64, size int) (int, error) {
	buf := w.buffer()
	n, err := again(func() (int, error) { return unix.Pread(in, buf[:min(size, len(buf))], off) })
	if n <= 0 || err != nil {
		return 0, err
	}
	for done := 0; done < n; {
		m, err := again(func() (int, error) { return unix.Pwrite(out, buf[done:n], off+int64(done)) })
		if err != nil {
			return done, err
		}
		done += m
	}
	return n, nil
}

// Segment is a part of a file that holds data.
type Segment struct{ Start, End int64 }

// Segments yields those parts of the first size bytes of a file that are not holes, in order, and moves its offset. A file
// system that does not know about holes says that everything is data.
func Segments(fd int, size int64) iter.Seq2[Segment, error] {
	return func(yield func(Segment, error) bool) {
		for off := int64(0); off < size; {
			start, err := unix.Seek(fd, off, unix.SEEK_DATA)
			switch err {
			case nil:
			case unix.ENXIO: // a hole up to the end, or the file has shrunk
				return
			case unix.EINVAL:
				yield(Segment{off, size}, nil)
				return
			default:
				yield(Segment{}, err)
				return
			}
			end, err := unix.Seek(fd, start, unix.SEEK_HOLE)
			if err != nil && err != unix.ENXIO {
				yield(Segment{}, err)
				return
			}
			if err == unix.ENXIO || end > size {
				end = size
			}
			if start >= size || !yield(Segment{start, end}, nil) {
				return
			}
			off = end
		}
	}
}
