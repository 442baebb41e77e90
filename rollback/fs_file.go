// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sort"
	"sync"

	"github.com/evoseal/containment/rollback/internal/object"
)

// openFile is an open regular file. It has ReadAt and Seek too.
type openFile struct {
	c      *checkpointFS
	name   string
	info   info
	chunks []object.Chunk
	starts []int64 // of the chunks

	mu     sync.Mutex
	at     int64
	data   []byte // of chunk loaded, hashed
	loaded int    // -1: none
	closed bool
}

func (c *checkpointFS) openFile(name string, i info, e *object.Entry) (fs.File, error) {
	f := &openFile{c: c, name: name, info: i, loaded: -1}
	f.chunks = []object.Chunk{{Hash: e.Data.Hash, Len: e.Size}}
	if e.Data.Type == object.Chunks {
		leave, err := c.s.enter(context.Background(), false)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		f.chunks, err = c.s.chunks(e)
		leave()
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: corrupt(c.id, err)}
		}
	}
	var at int64
	for _, chunk := range f.chunks {
		f.starts = append(f.starts, at)
		at += chunk.Len
	}
	return f, nil
}

func (f *openFile) Stat() (fs.FileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, f.error("stat", fs.ErrClosed)
	}
	return f.info, nil
}

func (f *openFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return f.error("close", fs.ErrClosed)
	}
	f.closed, f.data = true, nil
	return nil
}

func (f *openFile) Read(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.read(b, f.at)
	f.at += int64(n)
	return n, err
}

func (f *openFile) ReadAt(b []byte, at int64) (n int, err error) {
	if at < 0 {
		return 0, f.error("read", fs.ErrInvalid)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for n < len(b) && err == nil {
		var more int
		more, err = f.read(b[n:], at+int64(n))
		n += more
	}
	return n, err
}

func (f *openFile) Seek(offset int64, whence int) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.info.e.Size
	}
	if offset < 0 || whence < io.SeekStart || whence > io.SeekEnd || f.closed {
		return 0, f.error("seek", fs.ErrInvalid)
	}
	f.at = offset
	return offset, nil
}

// read takes from one chunk. The lock is held.
func (f *openFile) read(b []byte, at int64) (int, error) {
	switch {
	case f.closed:
		return 0, f.error("read", fs.ErrClosed)
	case f.info.e.Kind == object.Link:
		return 0, f.error("read", fs.ErrNotExist) // it leads nowhere
	case at >= f.info.e.Size:
		return 0, io.EOF
	}
	i := sort.Search(len(f.starts), func(i int) bool { return f.starts[i] > at }) - 1
	chunk, from := f.chunks[i], at-f.starts[i]
	if chunk.Hole {
		n := int(min(int64(len(b)), chunk.Len-from))
		clear(b[:n])
		return n, nil
	}
	if err := f.load(i); err != nil {
		return 0, err
	}
	return copy(b, f.data[from:]), nil
}

func (f *openFile) load(i int) error {
	if f.loaded == i {
		return nil
	}
	leave, err := f.c.s.enter(context.Background(), false)
	if err != nil {
		return f.error("read", err)
	}
	defer leave()
	data, err := f.c.s.object(object.Key{Type: object.Blob, Hash: f.chunks[i].Hash})
	if err == nil && int64(len(data)) != f.chunks[i].Len {
		err = &CorruptError{Object: f.chunks[i].Hash.String(), Why: "its directory has another size"}
	}
	if err != nil {
		return f.error("read", corrupt(f.c.id, err))
	}
	f.data, f.loaded = data, i
	return nil
}

func (f *openFile) error(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}

// ReadFile reads a whole file.
func (c *checkpointFS) ReadFile(name string) ([]byte, error) {
	f, err := c.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	file, ok := f.(*openFile)
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("is a directory")}
	}
	if file.info.e.Kind == object.Link {
		return nil, file.error("read", fs.ErrNotExist) // it leads nowhere
	}
	data := make([]byte, file.info.e.Size)
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, err
	}
	return data, nil
}
