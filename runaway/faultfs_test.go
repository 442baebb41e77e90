// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"sync"

	"github.com/evoseal/containment/internal/journal"
	"github.com/evoseal/containment/runaway"
)

// faultFS is a real directory whose calls can be counted, fail, or be the last ones of the process.
type faultFS struct {
	journal.FS
	calls *calls
}

// calls is what was called in all sessions.
type calls struct {
	mu     sync.Mutex
	list   []string
	before func(n int, op string) error // n counts from 0; nil: nothing happens
	noSync bool                         // a sync does nothing, so that a benchmark shows what is left
}

func (c *calls) step(op string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.list)
	if !c.noSync { // what is never read would only grow
		c.list = append(c.list, op)
	}
	if c.before == nil {
		return nil
	}
	return c.before(n, op)
}

// fail sets what happens before each call.
func (c *calls) fail(before func(n int, op string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = before
}

// count says how often something was called.
func (c *calls) count(op string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.list {
		if name == op {
			n++
		}
	}
	return n
}

// store is a FileStore on which the calls are counted.
func (c *calls) store(dir string) runaway.Store {
	return runaway.FileStoreOn(dir, func(dir string) (journal.FS, error) {
		fs, err := journal.OpenDir(dir, true)
		if err != nil {
			return nil, err
		}
		return &faultFS{fs, c}, nil
	})
}

func (f *faultFS) Open(name string, how journal.OpenMode) (journal.File, error) {
	if err := f.calls.step("open"); err != nil {
		return nil, err
	}
	file, err := f.FS.Open(name, how)
	if err != nil {
		return nil, err
	}
	return &faultFile{file, f.calls}, nil
}

func (f *faultFS) Rename(from, to string) error {
	if err := f.calls.step("rename"); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

func (f *faultFS) Sync() error {
	if err := f.calls.step("sync directory"); err != nil {
		return err
	}
	return f.FS.Sync()
}

type faultFile struct {
	journal.File
	calls *calls
}

func (f *faultFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.calls.step("write"); err != nil {
		n, _ := f.File.WriteAt(p[:len(p)/2], off) // a write that fails may have written something
		return n, err
	}
	return f.File.WriteAt(p, off)
}

func (f *faultFile) Truncate(size int64) error {
	if err := f.calls.step("truncate"); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultFile) Sync() error {
	if err := f.calls.step("sync"); err != nil || f.calls.noSync {
		return err
	}
	return f.File.Sync()
}

func (f *faultFile) Close() error {
	if err := f.calls.step("close"); err != nil {
		return err
	}
	return f.File.Close()
}
