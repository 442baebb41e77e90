// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// maxTries bounds the attempts to create one lease. One more is needed for each sweep that came between two system
// calls of ours.
const maxTries = 100

// Dir is a directory of leases. Its methods may be called at the same time, by any number of processes.
type Dir struct {
	dir       *stateDir
	startTime uint64
	bootID    string
}

// Open opens the directory for leases and creates it with mode (usually 0o700) if it is missing. The error is a
// [*DirError] if the directory could have been prepared by somebody else: it must be a real directory of the effective
// user in which nobody else can write.
func Open(path string, mode fs.FileMode) (*Dir, error) {
	start, err := StartTime(os.Getpid())
	if err != nil {
		return nil, err
	}
	boot, err := BootID()
	if err != nil {
		return nil, err
	}
	dir, err := openStateDir(path, mode)
	if err != nil {
		return nil, err
	}
	return &Dir{dir: dir, startTime: start, bootID: boot}, nil
}

// Close closes the directory. It must not be called while other methods run or leases are held.
func (d *Dir) Close() error { return d.dir.close() }

// Lease is held until Release, or until the process ends. One that is forgotten stays held.
type Lease struct {
	dir    *Dir
	fd     int
	once   sync.Once
	record Record
}

// Record returns what the lease names.
func (l *Lease) Record() Record {
	rec := l.record
	rec.Scratch, rec.Mounts, rec.Cgroups = slices.Clone(rec.Scratch), slices.Clone(rec.Mounts), slices.Clone(rec.Cgroups)
	return rec
}

// Acquire writes a lease for rec and takes its lock. ID must come from [NewID]; the holder's fields are filled in. After
// an error nothing is left behind. Nothing that rec names may be made before Acquire has returned.
func (d *Dir) Acquire(rec Record) (*Lease, error) {
	rec.PID, rec.StartTime, rec.BootID = os.Getpid(), d.startTime, d.bootID
	data, err := encode(rec)
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	l := &Lease{dir: d, record: rec}
	l.record = l.Record() // the caller's slices may change later
	for range maxTries {
		switch l.fd, err = d.create(rec.ID, data); {
		case err == nil:
			return l, nil
		case !errors.Is(err, errSwept):
			return nil, fmt.Errorf("lease: %q: %w", d.dir.join(rec.ID), err)
		}
	}
	return nil, fmt.Errorf("lease: %q: given up after %d attempts: %w", d.dir.join(rec.ID), maxTries, err)
}

// errSwept: a sweep saw the new file before it was locked, and took it.
var errSwept = errors.New("a sweep at the same time removed the new file")

// create makes the file under its first name, and renames it once it is locked and whole.
func (d *Dir) create(id string, data []byte) (int, error) {
	name := id + newSuffix
	fd, err := openat(d.dir.fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return -1, err // EEXIST too: ids do not repeat, so somebody uses one twice
	}
	if err = d.commit(fd, name, id, data); err == nil {
		return fd, nil
	}
	// A sweep that has the lock is about to remove the name; doing it here as well lets the next attempt begin at once.
	// Should the sweep then remove the file of that attempt, the rename notices.
	_ = unix.Unlinkat(d.dir.fd, name, 0)
	_ = unlock(fd)
	return -1, err
}

func (d *Dir) commit(fd int, name, id string, data []byte) error {
	ours, err := lock(fd)
	if err != nil {
		return err
	}
	if !ours {
		return errSwept // a sweep has it
	}
	if err := writeAll(fd, data); err != nil {
		return err
	}
	// NOREPLACE: a lease that has this name already belongs to somebody else.
	err = unix.Renameat2(d.dir.fd, name, d.dir.fd, id, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.ENOENT) {
		return errSwept // it was removed before we had the lock
	}
	return err
}

// Release removes the lease, which says that nothing it names exists any more. Only the first call has an effect.
func (l *Lease) Release() (err error) {
	l.once.Do(func() {
		// First the name, then the lock: the other way round a sweep could clean up in between.
		err = errors.Join(unix.Unlinkat(l.dir.dir.fd, l.record.ID, 0), unlock(l.fd))
	})
	if err != nil {
		return fmt.Errorf("lease: release %q: %w", l.dir.dir.join(l.record.ID), err)
	}
	return nil
}

// Abandon lets go of the lease without removing it: what it names is left to the next sweep, which may be the holder's own.
// Only the first call of Release or Abandon has an effect.
func (l *Lease) Abandon() (err error) {
	l.once.Do(func() { err = unlock(l.fd) })
	if err != nil {
		return fmt.Errorf("lease: abandon %q: %w", l.dir.dir.join(l.record.ID), err)
	}
	return nil
}
