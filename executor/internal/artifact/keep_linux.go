// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/scratch"
)

// errTooLarge: the file does not fit into what is left of MaxBytes.
var errTooLarge = errors.New("too large")

// sourceError is a failure to read the payload's file, which refuses this file only.
type sourceError struct{ error }

// keep copies an open file to the destination. Only a failure of the destination, or the end of ctx, is an error.
func (x *extraction) keep(ctx context.Context, in int, p string, st *unix.Stat_t) error {
	if st.Size > x.bytes || x.work <= 0 {
		x.refuse(p, "all artifacts together would have more than %d bytes", x.req.MaxBytes)
		return nil
	}
	executable := st.Mode&0o111 != 0
	out, err := x.dest.create(p, executable)
	if err == nil {
		var a executor.Artifact
		if a, err = x.store(ctx, in, out, p, st); err == nil {
			err = out.place()
		} else {
			err = errors.Join(err, out.drop())
		}
		if err == nil {
			a.Executable = executable
			x.artifacts = append(x.artifacts, a)
			x.bytes -= a.Size
			return nil
		}
	}
	var src sourceError
	switch {
	case errors.Is(err, errTooLarge):
		x.refuse(p, "all artifacts together would have more than %d bytes", x.req.MaxBytes)
	case errors.As(err, &src):
		x.refuse(p, "cannot be read: %v", src.error)
	case errors.Is(err, errBadPlace), errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EILSEQ):
		x.refuse(p, "%v", err) // names that the destination's file system does not take
	case ctx.Err() != nil:
		return fmt.Errorf("%w: stopped at %q: %w", errNoTime, p, err)
	default:
		return fmt.Errorf("artifact: %q: %w", p, err)
	}
	return nil
}

func (x *extraction) store(ctx context.Context, in int, out output, p string, st *unix.Stat_t) (executor.Artifact, error) {
	if x.buf == nil {
		x.buf = make([]byte, 128<<10)
	}
	c := &copying{in: in, out: out, left: x.bytes, buf: x.buf, sum: sha256.New()}
	err := c.all(ctx, st)
	x.work -= x.bytes - c.left
	if err != nil {
		return executor.Artifact{}, err
	}
	return executor.Artifact{Path: p, Size: c.off, SHA256: hex.EncodeToString(c.sum.Sum(nil))}, nil
}

// copying is one file on its way. The sum is that of the bytes that were written, in order.
type copying struct {
	in   int
	out  output
	off  int64 // bytes done
	left int64 // bytes that still fit
	buf  []byte
	sum  hash.Hash
}

// all copies data up to the end of the file as it is met, not as an earlier look told, and leaves holes holes.
func (c *copying) all(ctx context.Context, st *unix.Stat_t) error {
	if st.Blocks*512 >= st.Size { // without holes
		return c.data(ctx, -1)
	}
	for seg, err := range scratch.Segments(c.in, st.Size) {
		if err != nil {
			return sourceError{err}
		}
		if err := c.hole(ctx, seg.Start); err != nil {
			return err
		}
		if err := c.data(ctx, seg.End); err != nil {
			return err
		}
	}
	if c.off >= st.Size {
		return nil
	}
	if err := c.hole(ctx, st.Size); err != nil {
		return err
	}
	return c.out.Truncate(c.off)
}

// fits counts bytes before they are taken.
func (c *copying) fits(n int64) error {
	if c.left -= n; c.left < 0 {
		return errTooLarge
	}
	return nil
}

// hole passes over zeros up to end. They are counted like data.
func (c *copying) hole(ctx context.Context, end int64) error {
	if err := c.fits(end - c.off); err != nil {
		return err
	}
	clear(c.buf)
	for c.off < end {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n := min(end-c.off, int64(len(c.buf)))
		c.sum.Write(c.buf[:n])
		c.off += n
	}
	return nil
}

// data copies up to end, or to the end of the file if end is -1.
func (c *copying) data(ctx context.Context, end int64) error {
	for end < 0 || c.off < end {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		buf := c.buf
		if end >= 0 {
			buf = buf[:min(end-c.off, int64(len(buf)))]
		}
		n, err := unix.Pread(c.in, buf, c.off)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return sourceError{err}
		}
		if n == 0 {
			return nil
		}
		if err := c.fits(int64(n)); err != nil {
			return err
		}
		if _, err := c.out.WriteAt(buf[:n], c.off); err != nil {
			return err
		}
		c.sum.Write(buf[:n])
		c.off += int64(n)
	}
	return nil
}
