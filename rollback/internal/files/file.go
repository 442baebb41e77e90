// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// File is one that is written.
type File struct {
	*os.File
	dir    *Dir
	name   string
	behind int // bytes written since write-out was started
}

// Write is [os.File.Write].
func (f *File) Write(b []byte) (int, error) {
	if err := f.dir.fail("write", f.name); err != nil {
		return 0, err
	}
	n, err := f.File.Write(b)
	f.behind += n
	return n, err
}

// WriteBehind starts the write-out of what was written, now and then, so that Sync has less to wait for.
func (f *File) WriteBehind() {
	const every = 8 << 20
	if f.dir.Durable && f.behind >= every {
		f.behind = 0
		startWriteout(f.File)
	}
}

// Sync flushes the bytes and the size. After an error nothing is known of the file, and trying again proves nothing.
func (f *File) Sync() error {
	if err := f.dir.fail("sync", f.name); err != nil {
		return err
	}
	if !f.dir.Durable {
		return nil
	}
	return datasync(f.File)
}

// WriteFile puts data under a name, whole or not at all: it is written to temp, flushed, renamed, and the directory
// flushed. Whatever had the name is replaced.
func (d *Dir) WriteFile(temp, name string, data []byte) error {
	f, err := d.Create(temp)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = d.Rename(temp, name)
	}
	if err != nil {
		_ = d.Root.Remove(temp)
	}
	return err
}

// ReadFile reads a regular file of at most limit bytes. A longer one is an error before anything is allocated for it.
func (d *Dir) ReadFile(name string, limit int64) ([]byte, error) {
	f, err := d.OpenToRead(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("not a regular file of at most %d bytes: %w", limit, fs.ErrInvalid)}
	}
	data := make([]byte, st.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return data, nil
}
