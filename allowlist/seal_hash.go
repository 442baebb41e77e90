// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"crypto/sha256"
	"io"
	"sync"
)

const hashBuffer = 64 << 10

var buffers = sync.Pool{New: func() any { return new([hashBuffer]byte) }}

// sumFile digests a regular file of any size, which had this one when it was opened. Most files fit into one buffer and
// need one read: what is read at once, is as long as the file was and leaves room in the buffer, ends where the file
// ends.
func sumFile(f io.Reader, size int64) (Digest, error) {
	buf := buffers.Get().(*[hashBuffer]byte)
	defer buffers.Put(buf)
	n := 0
	for size < hashBuffer && n < hashBuffer {
		more, err := f.Read(buf[n:])
		whole := n == 0 && int64(more) == size && err == nil
		if n += more; whole || err == io.EOF {
			return Sum(buf[:n]), nil
		}
		if err != nil {
			return Digest{}, err
		}
	}
	// It is large, or grew meanwhile: go on with what is read already.
	return sumRest(buf, n, f)
}

func sumRest(buf *[hashBuffer]byte, n int, f io.Reader) (Digest, error) {
	h := sha256.New()
	h.Write(buf[:n])
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, buf[:]); err != nil {
		return Digest{}, err
	}
	return Digest(h.Sum(nil)), nil
}
