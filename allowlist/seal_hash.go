// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"crypto/sha256"
	"io"
	"os"
	"sync"
)

const hashBuffer = 64 << 10

var buffers = sync.Pool{New: func() any { return new([hashBuffer]byte) }}

// sumFile digests a file of any size. Most files fit into one buffer and need two reads.
func sumFile(f *os.File, size int64) (Digest, error) {
	buf := buffers.Get().(*[hashBuffer]byte)
	defer buffers.Put(buf)
	if size < hashBuffer {
		n, err := io.ReadFull(f, buf[:])
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return Sum(buf[:n]), nil
		}
		if err != nil {
			return Digest{}, err
		}
		// It grew meanwhile: go on with what is read already.
		return sumRest(buf, n, f)
	}
	return sumRest(buf, 0, f)
}

func sumRest(buf *[hashBuffer]byte, n int, f *os.File) (Digest, error) {
	h := sha256.New()
	h.Write(buf[:n])
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, buf[:]); err != nil {
		return Digest{}, err
	}
	return Digest(h.Sum(nil)), nil
}
