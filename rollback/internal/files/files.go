// SPDX-License-Identifier: Apache-2.0

// Package files are the operations on the store's files that can fail: all go through one place, so that a test can make
// the n-th of them fail as a full disk or a broken one would. Names are relative to the store's directory, which is held
// by a descriptor.
package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// Dir is the directory of a store.
type Dir struct {
	*os.Root
	Durable bool                        // whether data and names are flushed to the disk
	Fail    func(op, name string) error // nil in production
}

func (d *Dir) fail(op, name string) error {
	if d.Fail == nil {
		return nil
	}
	if err := d.Fail(op, name); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// Create makes a new file, 0600, and fails if there is one.
func (d *Dir) Create(name string) (*File, error) {
	if err := d.fail("create", name); err != nil {
		return nil, err
	}
	f, err := d.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &File{File: f, dir: d, name: name}, nil
}

// Append opens a file to write at its end, and makes it if there is none.
func (d *Dir) Append(name string) (*File, error) {
	if err := d.fail("append", name); err != nil {
		return nil, err
	}
	f, err := d.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &File{File: f, dir: d, name: name}, nil
}

// OpenToRead opens a file. A FIFO that somebody put there does not block it.
func (d *Dir) OpenToRead(name string) (*os.File, error) {
	if err := d.fail("open", name); err != nil {
		return nil, err
	}
	return d.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Rename gives a file its final name, durably: the directory of the new name is flushed. The file must be.
func (d *Dir) Rename(from, to string) error {
	if err := d.fail("rename", to); err != nil {
		return err
	}
	if err := d.Root.Rename(from, to); err != nil {
		return err
	}
	return d.SyncDir(path.Dir(to))
}

// Mkdir makes a directory, 0700; one that is there already is no error.
func (d *Dir) Mkdir(name string) error {
	switch err := d.MkdirUnflushed(name); {
	case err == nil:
		return d.SyncDir(path.Dir(name))
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	return nil
}

// MkdirUnflushed makes a directory, 0700, that may be gone after a power cut: for what is only passed through.
func (d *Dir) MkdirUnflushed(name string) error {
	if err := d.fail("mkdir", name); err != nil {
		return err
	}
	return d.Root.Mkdir(name, 0o700)
}

// Remove unlinks a name; a missing one is no error. It does not flush the directory.
func (d *Dir) Remove(name string) error {
	if err := d.fail("remove", name); err != nil {
		return err
	}
	if err := d.Root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// SyncDir flushes the names in a directory.
func (d *Dir) SyncDir(name string) error {
	if err := d.fail("syncdir", name); err != nil {
		return err
	}
	if !d.Durable {
		return nil
	}
	f, err := d.Root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return f.Sync()
}
