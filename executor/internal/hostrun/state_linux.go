// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/lease"
)

func (h *Host) openState() error {
	dir := h.StateDir
	if dir == "" {
		dir = defaultStateDir(h.Root)
	}
	fix := "set Config.StateDir to a directory of the caller's own"
	var err error
	// Searchable, since a run's own directories are below; not readable, so that runs do not find one another's.
	if err = MakeDir(dir); err == nil {
		h.leases, err = lease.Open(filepath.Join(dir, "leases"), 0o700)
	}
	if err != nil {
		return h.Unsupported("no state directory", fix, err)
	}
	if h.Root {
		if err := h.openSlots(dir); err != nil {
			return err
		}
	}
	h.Mounts = h.Root && !h.DiskScratch && !h.Lacks.Mounts && canMount(dir)
	if h.Scratch = h.ScratchDir; h.Scratch == "" {
		h.Scratch = filepath.Join(h.defaultScratchDir(dir), "scratch")
	}
	if err := h.makeScratchDir(); err != nil {
		return h.Unsupported("no scratch directory", "set Config.ScratchDir to a directory of the caller's own", err)
	}
	if h.Scratch, err = filepath.Abs(h.Scratch); err == nil {
		h.State, err = filepath.Abs(dir)
	}
	if err != nil {
		return h.Unsupported("no scratch directory", fix, err)
	}
	return nil
}

// openSlots opens the locks of uids. A uid belongs to the machine, so they are in one place whatever the state directory is:
// two executors that could not see each other's would give one uid to two runs, and each kill the other's.
func (h *Host) openSlots(state string) error {
	place := defaultStateDir(true)
	if !ownRun() {
		place = state
	}
	err := MakeDir(place)
	if err == nil {
		h.slots, err = lease.OpenSlots(lease.SlotConfig{
			Dir: filepath.Join(place, "uids"), Base: uint32(h.FirstUID), Count: uint32(h.UIDs),
		})
	}
	switch _, badRange := errors.AsType[*lease.RangeError](err); {
	case err == nil:
		return nil
	case badRange:
		return h.Unsupported("no uids for runs", "set Config.FirstUID and Config.UIDs to a range that nothing uses", err)
	}
	return h.Unsupported("no uids for runs", "make "+place+" a directory that only root can write to, whatever Config.StateDir is", err)
}

// ownRun reports whether the machine's directory for such files is this root's. That of a user namespace without a /run of
// its own has another user's before it, and other uids than the machine.
func ownRun() bool {
	var st unix.Stat_t
	return unix.Stat("/run", &st) != nil || st.Uid == 0
}

// defaultStateDir is in memory where that is possible: leases are worth nothing after the next boot, and a file costs ten
// times as much on a disk.
func defaultStateDir(root bool) string {
	if root && isTmpfs("/run") {
		return "/run/containment"
	}
	own := "containment-" + strconv.Itoa(os.Geteuid())
	if isTmpfs("/dev/shm") {
		return filepath.Join("/dev/shm", own)
	}
	if root {
		return "/run/containment"
	}
	return filepath.Join(os.TempDir(), own)
}

// defaultScratchDir is the state directory if every run mounts a file system of its own below it. Copies that do not
// belong into memory go to the temporary directory.
func (h *Host) defaultScratchDir(state string) string {
	if h.StateDir != "" || h.Mounts {
		return state
	}
	return filepath.Join(os.TempDir(), "containment-"+strconv.Itoa(os.Geteuid()))
}

// makeScratchDir makes the scratch directory; of the default one, what is above is ours and checked as well.
func (h *Host) makeScratchDir() error {
	if h.ScratchDir == "" {
		if err := MakeDir(filepath.Dir(h.Scratch)); err != nil {
			return err
		}
	}
	return MakeDir(h.Scratch)
}

func isTmpfs(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.TMPFS_MAGIC
}

// MakeDir makes a directory that others may search, or checks that an existing one is the caller's and nobody else can
// write to it: in a shared directory somebody may have made it first.
func MakeDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil {
		return err
	}
	if err := mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &fs.PathError{Op: "lstat", Path: dir, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%s is not a directory", dir)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to uid %d", dir, st.Uid)
	case st.Mode&0o022 != 0:
		return fmt.Errorf("%s is writable by others", dir)
	}
	return nil
}

// canMount tries what every run will do, in a directory that stays, so that a host program which is killed here leaves
// nothing that the next one does not find. Its lock keeps two of them apart.
func canMount(state string) bool {
	dir := filepath.Join(state, "probe")
	if MakeDir(dir) != nil {
		return false
	}
	lock, err := os.Open(state)
	if err != nil {
		return false
	}
	defer lock.Close()
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX) != nil {
		return false
	}
	for unmount(dir) == nil { // left by one that was killed
	}
	if err := mountScratch(dir, 1<<20, 16); err != nil {
		return false
	}
	return unmount(dir) == nil
}
