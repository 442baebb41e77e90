// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"encoding/binary"
	"errors"
)

// Jobs are encoded by hand: arguments and environment are bytes, which a text format would change where they are not UTF-8.

var errParams = errors.New("supervise: parameters are damaged")

// fields passes every field of the job through a coder, so that writing and reading cannot differ in their order.
func (j *Job) fields(c coder) {
	c.list(&j.Programs)
	c.list(&j.Args)
	c.list(&j.Env)
	c.text(&j.Dir)
	c.number(&j.UID)
	c.number(&j.GID)
	c.flag(&j.Reserved)
	n := len(j.Rlimits)
	c.count(&n)
	if j.Rlimits == nil {
		j.Rlimits = make([]Rlimit, n)
	}
	for i := range j.Rlimits {
		c.number(&j.Rlimits[i].Resource)
		c.word(&j.Rlimits[i].Soft)
		c.word(&j.Rlimits[i].Hard)
	}
	n = len(j.Affinity)
	c.count(&n)
	if j.Affinity == nil {
		j.Affinity = make([]uint64, n)
	}
	for i := range j.Affinity {
		c.word(&j.Affinity[i])
	}
	c.list(&j.Reachable)
	filter := string(j.Filter)
	c.text(&filter)
	j.Filter = []byte(filter)
	c.flag(&j.Sample)
	wrapped := j.Wrapper != nil
	c.flag(&wrapped)
	if wrapped {
		if j.Wrapper == nil {
			j.Wrapper = new(Wrapper)
		}
		c.text(&j.Wrapper.Program)
		c.list(&j.Wrapper.Args)
		c.number(&j.Wrapper.UID)
		c.number(&j.Wrapper.GID)
	}
	c.flag(&j.Landlock)
	c.number(&j.Cgroups)
	c.flag(&j.Into)
}

type coder interface {
	word(*uint64)
	text(*string)
	list(*[]string)
	number(*int)
	flag(*bool)
	count(*int)
}

func (j *Job) encode() []byte {
	w := &writer{}
	copied := *j
	copied.fields(w)
	return w.buf
}

func decodeJob(data []byte) (*Job, error) {
	j, r := new(Job), &reader{buf: data}
	j.fields(r)
	if r.bad || len(r.buf) > 0 {
		return nil, errParams
	}
	return j, nil
}

type writer struct{ buf []byte }

func (w *writer) word(v *uint64) { w.buf = binary.AppendUvarint(w.buf, *v) }
func (w *writer) number(v *int)  { w.buf = binary.AppendVarint(w.buf, int64(*v)) }
func (w *writer) count(v *int)   { w.number(v) }

func (w *writer) flag(v *bool) {
	n := 0
	if *v {
		n = 1
	}
	w.number(&n)
}

func (w *writer) text(v *string) {
	n := len(*v)
	w.number(&n)
	w.buf = append(w.buf, *v...)
}

func (w *writer) list(v *[]string) {
	n := len(*v)
	w.number(&n)
	for i := range *v {
		w.text(&(*v)[i])
	}
}

// reader yields zero values once the data is damaged.
type reader struct {
	buf []byte
	bad bool
}

func (r *reader) take(n int) {
	if r.bad = r.bad || n <= 0 || n > len(r.buf); r.bad {
		r.buf = nil
		return
	}
	r.buf = r.buf[n:]
}

func (r *reader) word(v *uint64) {
	var n int
	*v, n = binary.Uvarint(r.buf)
	r.take(n)
}

func (r *reader) number(v *int) {
	x, n := binary.Varint(r.buf)
	*v = int(x)
	r.take(n)
}

// count reads the number of things to come, each of which takes a byte at least.
func (r *reader) count(v *int) {
	if r.number(v); *v < 0 || *v > len(r.buf) {
		*v, r.bad = 0, true
	}
}

func (r *reader) flag(v *bool) {
	var n int
	r.number(&n)
	*v = n == 1
}

func (r *reader) text(v *string) {
	var n int
	if r.count(&n); n > 0 {
		*v = string(r.buf[:n])
		r.take(n)
	}
}

func (r *reader) list(v *[]string) {
	var n int
	r.count(&n)
	*v = make([]string, n)
	for i := range *v {
		r.text(&(*v)[i])
	}
}
