// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// The first byte of a lock file. It is overwritten instead of the file being cut, which would cost the file system a block
// each time. What follows, up to a line feed, is what [Slot.Leave] wrote.
const (
	markInUse = '1'
	markClean = '0'
	maxLeft   = unix.PathMax
)

// Slots is a range of user ids, each of which at most one process of the host has at a time. Its methods may be called
// at the same time.
type Slots struct {
	c    SlotConfig
	dir  *stateDir
	next atomic.Uint32 // where the next search begins
}

// OpenSlots checks the range and opens its directory. The error is a [*RangeError] if an id of the range is taken for
// something else, as far as /etc/passwd and /etc/subuid say, or a [*DirError]. Users that only a directory service knows
// are not seen.
func OpenSlots(c SlotConfig) (*Slots, error) {
	if err := c.checkRange(uint64(os.Getuid())); err != nil {
		return nil, err
	}
	for path, check := range map[string]func(io.Reader) error{
		"/etc/passwd": c.checkUsers, "/etc/subuid": c.checkSubordinate,
	} {
		if err := checkFile(path, check); err != nil {
			return nil, err
		}
	}
	dir, err := openStateDir(c.Dir, 0o700)
	if err != nil {
		return nil, err
	}
	s := &Slots{c: c, dir: dir}
	// Every process begins somewhere else, so that short-lived ones do not all take the first id again and again.
	s.next.Store(rand.Uint32N(c.Count))
	return s, nil
}

// checkFile applies check to a file, if there is one: a host without it has no such users.
func checkFile(path string, check func(io.Reader) error) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("lease: reserved user ids: %w", err)
	}
	defer func() { _ = f.Close() }()
	return check(f)
}

// Close closes the directory. It must not be called while other methods run. Slots that are held stay held.
func (s *Slots) Close() error { return s.dir.close() }

// Slot is a user id that nobody else has until Release or Abandon, or until the process ends.
type Slot struct {
	UID uint32
	// Dirty: the one who had the id before did not release it. Processes, files and kernel objects of that id may still
	// be there; they must be gone before it is used.
	Dirty bool
	// Left, if Dirty, is the path that the one before wrote down with Leave; empty if that did not happen.
	Left string

	fd   int
	once sync.Once
}

// Take returns an id that is free, or [ErrNoSlot]. An id that was released just now is taken last.
func (s *Slots) Take() (*Slot, error) {
	start := s.next.Load()
	for i := range s.c.Count {
		n := uint32((uint64(start) + uint64(i)) % uint64(s.c.Count))
		slot, err := s.try(s.c.Base + n)
		if err != nil {
			return nil, fmt.Errorf("lease: user id %d: %w", s.c.Base+n, err)
		}
		if slot != nil {
			s.next.Store((n + 1) % s.c.Count)
			return slot, nil
		}
	}
	return nil, ErrNoSlot
}

// try returns nil if the id is taken. Lock files are never removed, so that a lock and a name cannot part.
func (s *Slots) try(uid uint32) (*Slot, error) {
	fd, err := openat(s.dir.fd, strconv.FormatUint(uint64(uid), 10), unix.O_RDWR|unix.O_CREAT, 0o600)
	if err != nil {
		return nil, err
	}
	free, err := lock(fd)
	if err != nil || !free {
		_ = unix.Close(fd)
		return nil, err
	}
	slot := &Slot{UID: uid, fd: fd}
	if slot.Dirty, slot.Left, err = mark(fd); err != nil {
		_ = unlock(fd)
		return nil, err
	}
	return slot, nil
}

// mark reports whether the file says "in use" already, and makes it say so. What it says outlives the lock.
func mark(fd int) (was bool, left string, err error) {
	var b [1 + maxLeft + 1]byte
	n, err := unix.Pread(fd, b[:], 0)
	if err != nil {
		return false, "", fmt.Errorf("read: %w", err)
	}
	if n > 0 && b[0] == markInUse {
		left, _, _ = strings.Cut(string(b[1:n]), "\n")
		return true, left, nil
	}
	// The old path goes as well: it must not be taken for the new one's.
	return false, "", writeAll(fd, []byte{markInUse, '\n'})
}

// Leave writes down which directory will be there if this process is killed, for the one who gets the id Dirty. That one
// may know no other trace of this process: leases are in a directory that every program can choose.
func (s *Slot) Leave(dir string) error {
	if len(dir) > maxLeft || strings.ContainsRune(dir, '\n') {
		return fmt.Errorf("lease: user id %d: %q: %w", s.UID, dir, fs.ErrInvalid)
	}
	if err := writeAll(s.fd, []byte(string(markInUse)+dir+"\n")); err != nil {
		return fmt.Errorf("lease: user id %d: %w", s.UID, err)
	}
	return nil
}

// Release gives the id back. The caller says by this that no process has it and nothing that it owned is left. Only the
// first call of Release or Abandon has an effect.
func (s *Slot) Release() (err error) {
	s.once.Do(func() {
		err = errors.Join(writeAll(s.fd, []byte{markClean}), unlock(s.fd))
	})
	if err != nil {
		return fmt.Errorf("lease: user id %d: release: %w", s.UID, err)
	}
	return nil
}

// Abandon gives the id up without saying that it is clean: whoever takes it next gets it Dirty.
func (s *Slot) Abandon() (err error) {
	s.once.Do(func() { err = unlock(s.fd) })
	if err != nil {
		return fmt.Errorf("lease: user id %d: abandon: %w", s.UID, err)
	}
	return nil
}
