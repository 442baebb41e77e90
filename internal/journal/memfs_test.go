// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/evoseal/containment/internal/journal"
)

// inode is what a file is on a memFS: what a process sees, and what is on the disk.
type inode struct {
	name       string
	data, disk []byte
	locked     bool
}

// memFS is a directory in memory that can fail at each call, and forget what was not synced.
type memFS struct {
	mu    sync.Mutex
	names map[string]*inode // what a process sees
	disk  map[string]*inode // what is left after a power failure
	calls []string          // what was called, without reading calls
	// before is asked before each such call what should happen to it; nil lets all go through.
	before func(call int, op string) fault
}

// fault is what happens to a call.
type fault struct {
	err   error // not nil: the call fails
	part  bool  // a write writes half before it fails or the process dies
	die   bool  // the process dies before the call, or after half of it
	after bool  // … or after it
}

// killed is the panic of a process that died.
type killed struct{ call int }

func newMemFS() *memFS { return &memFS{names: map[string]*inode{}, disk: map[string]*inode{}} }

// step counts the call and runs do, unless a fault hits.
func (m *memFS) step(op string, do, half func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, op)
	var f fault
	if m.before != nil {
		f = m.before(len(m.calls)-1, op)
	}
	if f.part && half != nil {
		half()
	}
	if f.die && !f.after {
		panic(killed{len(m.calls) - 1})
	}
	if f.err != nil {
		return f.err
	}
	do()
	if f.die {
		panic(killed{len(m.calls) - 1})
	}
	return nil
}

func (m *memFS) Open(name string, how journal.OpenMode) (journal.File, error) {
	m.mu.Lock()
	there := m.names[name]
	m.mu.Unlock()
	if there != nil {
		return &memFile{m, there}, nil
	}
	if how != journal.CreateOrOpen {
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	err := m.step("make "+name, func() {
		there = &inode{name: name}
		m.names[name] = there
	}, nil)
	if err != nil {
		return nil, err
	}
	return &memFile{m, there}, nil
}

func (m *memFS) Rename(from, to string) error {
	return m.step("rename "+from, func() {
		m.names[to] = m.names[from]
		m.names[to].name = to
		delete(m.names, from)
	}, nil)
}

func (m *memFS) Sync() error  { return m.step("sync dir", func() { m.disk = maps.Clone(m.names) }, nil) }
func (m *memFS) Close() error { return nil }

type memFile struct {
	m    *memFS
	node *inode
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	write := func(p []byte) {
		if grow := int(off) + len(p) - len(f.node.data); grow > 0 {
			f.node.data = append(f.node.data, make([]byte, grow)...)
		}
		copy(f.node.data[off:], p)
	}
	n := len(p)
	err := f.m.step("write "+f.node.name, func() { write(p) }, func() { n = len(p) / 2; write(p[:n]) })
	return n, err
}

func (f *memFile) Truncate(size int64) error {
	return f.m.step("truncate "+f.node.name, func() { f.node.data = f.node.data[:size] }, nil)
}

func (f *memFile) Sync() error {
	return f.m.step("sync "+f.node.name, func() { f.node.disk = slices.Clone(f.node.data) }, nil)
}

func (f *memFile) Stat() (int64, bool, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	for _, node := range f.m.names {
		if node == f.node {
			return int64(len(f.node.data)), true, nil
		}
	}
	return int64(len(f.node.data)), false, nil
}

func (f *memFile) Lock() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.node.locked {
		return journal.ErrLocked
	}
	f.node.locked = true
	return nil
}

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.node.locked = false
	return nil
}

// afterKill is the directory after kill -9: everything that was written is there, and no lock is held.
func (m *memFS) afterKill() *memFS {
	next := newMemFS()
	for name, node := range m.names {
		next.names[name] = &inode{name: name, data: slices.Clone(node.data), disk: slices.Clone(node.disk)}
	}
	for name, node := range m.disk {
		next.disk[name] = &inode{name: name, data: slices.Clone(node.disk), disk: slices.Clone(node.disk)}
		if next.names[name] != nil && m.names[name] == node {
			next.disk[name] = next.names[name]
		}
	}
	return next
}

// afterPowerLoss is the directory after the machine died: what was synced is there, and any part of the rest. Each name is
// the old or the new one; a file that grew has any length between, one that was changed is the old or the new.
func (m *memFS) afterPowerLoss(rng *rand.Rand) *memFS {
	next, names := newMemFS(), maps.Clone(m.disk)
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		if rng.IntN(2) == 0 {
			names[name] = m.names[name]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		node := names[name]
		data := node.disk
		switch grew := len(node.data) - len(node.disk); {
		case grew > 0 && slices.Equal(node.data[:len(node.disk)], node.disk):
			// Nothing and all of it are the likeliest, and the most interesting.
			data = node.data[:len(node.disk)+min(grew, max(0, rng.IntN(3*grew)-grew))]
		case rng.IntN(2) == 0:
			data = node.data
		}
		next.names[name] = &inode{name: name, data: slices.Clone(data), disk: slices.Clone(data)}
	}
	next.disk = maps.Clone(next.names)
	return next
}
