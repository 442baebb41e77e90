// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/rollback/internal/object"
)

// chunked stores a large file piece by piece on a fixed grid. A piece without a byte but zero is a hole, whatever the
// disk says, so that the list follows from the bytes alone; what the disk says about holes only saves reading them.
func (w *worker) chunked(fd int, n *Node) (object.Key, int64, error) {
	buf, giveBack := w.buffer(object.ChunkLen)
	defer giveBack()
	var list []object.Chunk
	for off := int64(0); off < n.Size; {
		if w.stopped.Load() {
			return object.Key{}, 0, errStale
		}
		if end := holeEnd(fd, off, n.Size); end > off {
			list = appendHole(list, end-off)
			off = end
			continue
		}
		want := min(object.ChunkLen, n.Size-off)
		size, err := fillFrom(fd, buf[:want], off)
		if err != nil || int64(size) < want {
			return object.Key{}, off + int64(size), err
		}
		if allZero(buf[:size]) {
			list = appendHole(list, want)
		} else {
			key, err := w.put(object.Blob, buf[:size])
			if err != nil {
				return key, 0, err
			}
			list = append(list, object.Chunk{Hash: key.Hash, Len: want})
		}
		off += want
	}
	// Has it grown? The second stat says so as well, but a file system may not tell sizes.
	if more, err := pread(fd, buf[:1], n.Size); err != nil || more > 0 {
		return object.Key{}, n.Size + int64(more), err
	}
	raw := object.EncodeChunks(list)
	key, err := w.put(object.Chunks, raw)
	w.keepChunks(n, raw)
	return key, n.Size, err
}

// holeEnd returns up to where there are only whole pieces of hole from off on; off if there is none. The last piece of
// a file is whole however short it is.
func holeEnd(fd int, off, size int64) int64 {
	var data int64
	err := fsys.Retry(func() (err error) {
		data, err = unix.Seek(fd, off, unix.SEEK_DATA)
		return err
	})
	switch {
	case err == unix.ENXIO, err == nil && data >= size:
		return size
	case err != nil:
		return off // no knowledge of holes: read
	}
	return data / object.ChunkLen * object.ChunkLen
}

func appendHole(list []object.Chunk, size int64) []object.Chunk {
	if last := len(list) - 1; last >= 0 && list[last].Hole {
		list[last].Len += size
		return list
	}
	return append(list, object.Chunk{Hole: true, Len: size})
}

// fillFrom reads len(buf) bytes at off, fewer only at the end of the file.
func fillFrom(fd int, buf []byte, off int64) (size int, err error) {
	for size < len(buf) {
		n, err := pread(fd, buf[size:], off+int64(size))
		if n == 0 || err != nil {
			return size, err
		}
		size += n
	}
	return size, nil
}

var zeros [64 << 10]byte

func allZero(b []byte) bool {
	for len(b) > len(zeros) {
		if !bytes.Equal(b[:len(zeros)], zeros[:]) {
			return false
		}
		b = b[len(zeros):]
	}
	return bytes.Equal(b, zeros[:len(b)])
}
