// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrProtocol: the other end broke the rules of the stream.
var ErrProtocol = errors.New("box: protocol violation")

// Version is that of the protocol. Both ends must have the same.
const Version = 2

// Kind says what a record is.
type Kind byte

// The records of the host.
const (
	KindOpen     Kind = iota + 1 // [Open]
	KindJob                      // [Job]
	KindTree                     // data of the job's trees, one after the other
	KindStdin                    // data
	KindStdinEnd                 // nothing
	KindCancel                   // nothing
	KindExit                     // nothing
	KindSpent                    // nothing: the payload has used its CPU time, by the kernel's own account
)

// The records of the box.
const (
	KindHello    Kind = iota + 65 // [Hello]
	KindRefused                   // [Refused]: the payload was not started; only end follows
	KindStarted                   // nothing
	KindStdout                    // data
	KindStderr                    // data
	KindCredit                    // nothing: one more record of stdin may come
	KindResult                    // [Result]
	KindArtifact                  // data
	KindEnd                       // the nonce
)

const (
	// MaxRecord bounds the bytes of every record but KindJob, which the host alone sends.
	MaxRecord = 64 << 10
	// MaxJob is more than the kernel lets argv and environment have.
	MaxJob = 8 << 20
	// InitialCredit is the number of records of stdin that the host may send before it was given any.
	InitialCredit = 2

	headerSize = 5
)

// Limit returns how long a record may be.
func (k Kind) Limit() int {
	switch k {
	case KindStdinEnd, KindCancel, KindExit, KindSpent, KindStarted, KindCredit:
		return 0
	case KindJob:
		return MaxJob
	case KindEnd:
		return NonceSize
	}
	return MaxRecord
}

// Writer writes records. Its methods may be called from any goroutine.
type Writer struct {
	mu  sync.Mutex // guards what follows
	w   io.Writer
	buf []byte // records that are not written yet
}

// NewWriter begins a stream.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Send writes one record, and those that wait, at once.
func (w *Writer) Send(k Kind, data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(k, data)
	return w.flush()
}

// Queue keeps one record until the next Send or Flush, or until a few of them wait.
func (w *Writer) Queue(k Kind, data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.add(k, data); len(w.buf) < MaxRecord {
		return nil
	}
	return w.flush()
}

// Flush writes what waits.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush()
}

func (w *Writer) add(k Kind, data []byte) {
	w.buf = append(w.buf, byte(k))
	w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(len(data)))
	w.buf = append(w.buf, data...)
}

func (w *Writer) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	_, err := w.w.Write(w.buf)
	if w.buf = w.buf[:0]; cap(w.buf) > 4*MaxRecord {
		w.buf = nil // a large job
	}
	return err
}

// Reader reads records.
type Reader struct {
	r   *bufio.Reader
	buf []byte
}

// NewReader reads from the beginning of a stream.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, MaxRecord)} }

// Next returns the next record. Its data is valid until the next call. Memory grows with what has arrived, never with
// what a length says. The end of the stream between two records is io.EOF.
func (r *Reader) Next() (Kind, []byte, error) {
	var head [headerSize]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		if err == io.ErrUnexpectedEOF {
			err = fmt.Errorf("%w: it ends in a record", ErrProtocol)
		}
		return 0, nil, err
	}
	k, n := Kind(head[0]), binary.BigEndian.Uint32(head[1:])
	if uint64(n) > uint64(k.Limit()) {
		return 0, nil, fmt.Errorf("%w: a record of kind %d with %d bytes", ErrProtocol, k, n)
	}
	if n <= MaxRecord {
		if r.buf == nil || cap(r.buf) < int(n) {
			r.buf = make([]byte, max(n, 4<<10))
		}
		r.buf = r.buf[:n]
		if _, err := io.ReadFull(r.r, r.buf); err != nil {
			return 0, nil, fmt.Errorf("%w: it ends in a record: %w", ErrProtocol, err)
		}
		return k, r.buf, nil
	}
	var large growing
	if _, err := io.CopyN(&large, r.r, int64(n)); err != nil {
		return 0, nil, fmt.Errorf("%w: it ends in a record: %w", ErrProtocol, err)
	}
	return k, large, nil
}

type growing []byte

func (g *growing) Write(p []byte) (int, error) {
	*g = append(*g, p...)
	return len(p), nil
}
