// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"errors"
)

// ErrDamaged: the data is no message of that kind.
var ErrDamaged = errors.New("wire: damaged message")

// Coder takes the fields of a message.
type Coder interface {
	Word(*uint64)
	Number(*int64)
	Text(*string)
	// Count is the number of elements to come, each of which takes a byte at least. See [Slice].
	Count(*int)
	// Flag is one byte, and nothing but 0 and 1.
	Flag(*bool)
}

// Int passes an int.
func Int(c Coder, v *int) {
	x := int64(*v)
	if c.Number(&x); x != int64(*v) { // a message that is sent is not written to
		*v = int(x)
	}
}

// Bytes passes bytes.
func Bytes(c Coder, v *[]byte) {
	s := string(*v)
	c.Text(&s)
	if _, ok := c.(*Reader); ok {
		*v = []byte(s)
	}
}

// Texts passes a list of texts.
func Texts(c Coder, v *[]string) { Slice(c, v, func(s *string) { c.Text(s) }) }

// Slice passes a list of anything; field passes one element.
func Slice[T any](c Coder, v *[]T, field func(*T)) {
	n := len(*v)
	c.Count(&n)
	if r, ok := c.(*Reader); ok {
		// It grows with what is really there: an element may be much larger than its bytes.
		*v = nil
		for range n {
			var one T
			if field(&one); r.bad {
				return
			}
			*v = append(*v, one)
		}
		return
	}
	for i := range *v {
		field(&(*v)[i])
	}
}

// Writer collects a message.
type Writer struct{ buf []byte }

// Bytes returns what was written.
func (w *Writer) Bytes() []byte { return w.buf }

// Word appends one to ten bytes.
func (w *Writer) Word(v *uint64) { w.buf = binary.AppendUvarint(w.buf, *v) }

// Number appends one to ten bytes.
func (w *Writer) Number(v *int64) { w.buf = binary.AppendVarint(w.buf, *v) }

// Count appends a number.
func (w *Writer) Count(v *int) { w.buf = binary.AppendVarint(w.buf, int64(*v)) }

// Text appends the length and the bytes.
func (w *Writer) Text(v *string) {
	n := len(*v)
	w.Count(&n)
	w.buf = append(w.buf, *v...)
}

// Flag appends one byte.
func (w *Writer) Flag(v *bool) {
	b := byte(0)
	if *v {
		b = 1
	}
	w.buf = append(w.buf, b)
}

// Reader takes a message apart.
type Reader struct {
	buf []byte
	bad bool
}

// NewReader begins with the first field in data, which must not change meanwhile.
func NewReader(data []byte) *Reader { return &Reader{buf: data} }

// Err is called after the last field.
func (r *Reader) Err() error {
	if r.bad || len(r.buf) > 0 {
		return ErrDamaged
	}
	return nil
}

func (r *Reader) take(n int) {
	if r.bad = r.bad || n <= 0 || n > len(r.buf); r.bad {
		r.buf = nil
		return
	}
	r.buf = r.buf[n:]
}

// Word reads what Writer.Word wrote.
func (r *Reader) Word(v *uint64) {
	x, n := binary.Uvarint(r.buf)
	if r.take(n); r.bad {
		x = 0
	}
	*v = x
}

// Number reads what Writer.Number wrote.
func (r *Reader) Number(v *int64) {
	x, n := binary.Varint(r.buf)
	if r.take(n); r.bad {
		x = 0
	}
	*v = x
}

// Count reads a number of things to come.
func (r *Reader) Count(v *int) {
	var n int64
	if r.Number(&n); n < 0 || n > int64(len(r.buf)) {
		n, r.bad = 0, true
	}
	*v = int(n)
}

// Text reads what Writer.Text wrote.
func (r *Reader) Text(v *string) {
	var n int
	r.Count(&n)
	*v = ""
	if n > 0 {
		*v = string(r.buf[:n])
		r.take(n)
	}
}

// Flag reads one byte.
func (r *Reader) Flag(v *bool) {
	*v = len(r.buf) > 0 && r.buf[0] == 1
	if len(r.buf) > 0 && r.buf[0] > 1 {
		r.bad = true
	}
	r.take(1)
}
