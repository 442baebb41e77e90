// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"

	"golang.org/x/sys/unix"
)

// What is sent is a row of items, each of which begins with one of these bytes.
const (
	itemFile    = 'a' // path, executable; then segments
	itemRefusal = 'r' // path or pattern, reason
	itemEnd     = 'z'

	segmentData  = 's' // length, bytes
	segmentHole  = 'h' // length
	segmentPlace = 'e' // the file is complete
	segmentDrop  = 'x' // it is not, and does not come back; why is a refusal that follows
)

const (
	maxPath    = 16 << 10 // more than ArtifactDepth names
	maxText    = 1 << 10  // of a refusal; a hostile path may be much longer, and nobody wants to read that
	maxSegment = 128 << 10
)

// Send is Extract for a destination on another machine, or in another view of the files: it writes to w what [Receive]
// reads there. Dest and ID of the request are not used.
func Send(ctx context.Context, r Request, w io.Writer) error {
	if err := r.check(true, false); err != nil {
		return err
	}
	x := newExtraction(&r)
	root, err := x.openRoot()
	if err != nil {
		return err
	}
	defer unix.Close(root)
	s := &sender{w: bufio.NewWriterSize(w, 32<<10)}
	x.dest = s
	if err := x.inTime(ctx, root); err != nil {
		return err
	}
	_, refusals := x.all()
	for _, one := range refusals {
		if err := s.item(itemRefusal, short(one.Path), short(one.Reason)); err != nil {
			return err
		}
	}
	if err := s.item(itemEnd); err != nil {
		return err
	}
	return s.w.Flush()
}

func short(text string) string { return text[:min(len(text), maxText)] }

// sender is a target that writes everything to a stream.
type sender struct {
	w   *bufio.Writer
	buf []byte
	off int64 // in the file that began last
}

func (s *sender) item(kind byte, texts ...string) error {
	s.buf = append(s.buf[:0], kind)
	for _, t := range texts {
		s.buf = append(binary.AppendUvarint(s.buf, uint64(len(t))), t...)
	}
	_, err := s.w.Write(s.buf)
	return err
}

func (s *sender) segment(kind byte, n int64) error {
	s.buf = binary.AppendUvarint(append(s.buf[:0], kind), uint64(n))
	_, err := s.w.Write(s.buf)
	return err
}

func (s *sender) create(p string, executable bool) (output, error) {
	s.off = 0
	if err := s.item(itemFile, p); err != nil {
		return nil, err
	}
	b := byte(0)
	if executable {
		b = 1
	}
	return s, s.w.WriteByte(b)
}

// WriteAt is only called with growing offsets.
func (s *sender) WriteAt(p []byte, off int64) (int, error) {
	if err := s.Truncate(off); err != nil {
		return 0, err
	}
	if err := s.segment(segmentData, int64(len(p))); err != nil {
		return 0, err
	}
	s.off += int64(len(p))
	return s.w.Write(p)
}

// Truncate makes the file longer.
func (s *sender) Truncate(size int64) error {
	if size == s.off {
		return nil
	}
	n := size - s.off
	s.off = size
	return s.segment(segmentHole, n)
}

func (s *sender) place() error { return s.item(segmentPlace) }
func (s *sender) drop() error  { return s.item(segmentDrop) }
