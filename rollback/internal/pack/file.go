// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"encoding/hex"
	"errors"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/evoseal/containment/rollback/internal/files"
	"github.com/evoseal/containment/rollback/internal/object"
)

const suffix = ".pack"

// packFile is one pack. It does not change after it was read, but for the descriptor.
type packFile struct {
	path  string // relative to the store
	name  object.Hash
	table table
	size  int64
	end   int64 // of the records
	fault error // the table is damaged, or made again from the records, or the file could not be read
}

// parseName returns the hash that a pack is named by.
func parseName(file string) (name object.Hash, ok bool) {
	digits, ok := strings.CutSuffix(file, suffix)
	if !ok || len(digits) != 2*len(name) || strings.ToLower(digits) != digits {
		return name, false
	}
	_, err := hex.Decode(name[:], []byte(digits))
	return name, err == nil
}

func fileName(name object.Hash) string { return path.Join(Dir, name.String()+suffix) }

// load reads the table. What is wrong with the pack is in its fault.
func load(dir *files.Dir, name object.Hash) *packFile {
	p := &packFile{path: fileName(name), name: name}
	f, err := openPack(dir, p.path)
	if err != nil {
		p.fault = &Fault{Pack: p.path, Err: err}
		return p
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = damagef("not a regular file")
	}
	if err == nil {
		p.size = st.Size()
		p.table, p.end, err = readTable(f, p.size, name)
	}
	if errors.Is(err, ErrDamaged) {
		p.table = recoverTable(f, p.size)
	}
	if err != nil {
		p.fault = &Fault{Pack: p.path, Err: err}
	}
	return p
}

func openPack(dir *files.Dir, name string) (*os.File, error) { return dir.OpenToRead(name) }

// maxOpen is how many packs are kept open: a store can have more packs than the process may have descriptors.
const maxOpen = 32

// handles keeps packs open between reads.
type handles struct {
	dir  *files.Dir
	mu   sync.Mutex
	open map[*packFile]*handle
}

type handle struct {
	file  *os.File
	users int
}

// get opens the pack if it is not open. The caller calls done when it has read.
func (h *handles) get(p *packFile) (f *os.File, done func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.open[p]
	if e == nil {
		h.evict(maxOpen - 1)
		f, err := openPack(h.dir, p.path)
		if err != nil {
			return nil, nil, err
		}
		e = &handle{file: f}
		if h.open == nil {
			h.open = map[*packFile]*handle{}
		}
		h.open[p] = e
	}
	e.users++
	return e.file, func() {
		h.mu.Lock()
		e.users--
		h.mu.Unlock()
	}, nil
}

// evict closes packs that nobody reads until no more than most are open.
func (h *handles) evict(most int) {
	for p, e := range h.open {
		if len(h.open) <= most {
			return
		}
		if e.users == 0 {
			_ = e.file.Close() // it was only read
			delete(h.open, p)
		}
	}
}

func (h *handles) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.evict(0)
}
