// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"encoding/binary"
	"unsafe"
)

// imageBase is where our init maps its program: far below the stack and the libraries and far above a program that is not
// position-independent, also where user space has 39 bits.
const imageBase uintptr = 1 << 37

// image is memory for another process, in which everything lies at a known address.
type image struct{ buf []byte }

// newImage leaves room for the program itself, which comes last and lies first.
func newImage() *image { return &image{buf: make([]byte, unsafe.Sizeof(program{}))} }

// put appends a copy of b, aligned for every type, and returns its address.
func (m *image) put(b []byte) uintptr {
	const align = 16
	for len(m.buf)%align != 0 {
		m.buf = append(m.buf, 0)
	}
	at := imageBase + uintptr(len(m.buf))
	m.buf = append(m.buf, b...)
	return at
}

// encode completes the image: the program with addresses of the image in place of pointers.
func (p *program) encode() []byte {
	guard, ops, programs := p.image.ops(p.guard), p.image.ops(p.ops), p.words(p.programs)
	copied := *p
	head := unsafe.Slice((*byte)(unsafe.Pointer(&copied)), unsafe.Sizeof(copied))
	copy(p.image.buf, head)
	word := func(offset uintptr, v uintptr) { binary.NativeEndian.PutUint64(p.image.buf[offset:], uint64(v)) }
	for _, one := range []struct{ offset, address uintptr }{
		{unsafe.Offsetof(p.guard), guard}, {unsafe.Offsetof(p.ops), ops}, {unsafe.Offsetof(p.programs), programs},
		{unsafe.Offsetof(p.clone), p.at.clone}, {unsafe.Offsetof(p.pause), p.at.pause},
		{unsafe.Offsetof(p.failure), p.at.failure}, {unsafe.Offsetof(p.status), p.at.status},
		{unsafe.Offsetof(p.rusage), p.at.rusage}, {unsafe.Offsetof(p.event), p.at.event}, {unsafe.Offsetof(p.note), p.at.note},
		{unsafe.Offsetof(p.image), 0},
	} {
		word(one.offset, one.address)
	}
	for i := range unsafe.Sizeof(p.keep) / unsafe.Sizeof(uintptr(0)) {
		word(unsafe.Offsetof(p.keep)+i*unsafe.Sizeof(uintptr(0)), 0)
	}
	return p.image.buf
}

func (m *image) ops(list []op) uintptr {
	if len(list) == 0 {
		return 0
	}
	return m.put(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), uintptr(len(list))*unsafe.Sizeof(op{})))
}
