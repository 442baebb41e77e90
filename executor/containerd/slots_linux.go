// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/evoseal/containment/internal/lease"
)

// slots hands out ranges of ids. The lock files are numbered from the first id on, by one for each range.
type slots struct {
	first uint32
	locks *lease.Slots
}

// openSlots checks that nothing on this host has an id of the range. The locks are in one place for the whole machine,
// whatever the state directory is: kernel objects are counted by id.
func openSlots(dir string, r IDRange) (*slots, error) {
	last := uint64(r.First) + uint64(r.Boxes)*IDsPerBox
	if r.First%IDsPerBox != 0 || r.Boxes < 1 || last > 1<<32-1 {
		return nil, fmt.Errorf("ids from %d for %d boxes: must start at a multiple of %d and end below 2^32", r.First, r.Boxes, IDsPerBox)
	}
	if err := checkSubordinate("/etc/subuid", uint64(r.First), last); err != nil {
		return nil, err
	}
	locks, err := lease.OpenSlots(lease.SlotConfig{Dir: dir, Base: r.First, Count: uint32(r.Boxes)})
	if err != nil {
		return nil, err
	}
	return &slots{first: r.First, locks: locks}, nil
}

// checkSubordinate refuses ids that belong to the containers of ordinary users.
func checkSubordinate(file string, first, last uint64) error {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		user, from, count, ok := subordinate(lines.Text())
		if ok && from < last && from+count > first {
			return fmt.Errorf("ids %d to %d are given to user %q in %s", from, from+count-1, user, file)
		}
	}
	return nil
}

// base is the first host id of a slot.
func (s *slots) base(slot *lease.Slot) uint32 { return s.first + (slot.UID-s.first)*IDsPerBox }

func (s *slots) close() error { return s.locks.Close() }

// giveBack releases the range of a box that was swept, unless somebody else had it since: a living box has it, or another
// dead one, which is not swept yet.
func (s *slots) giveBack(uid uint32, box string) error {
	if uid == 0 {
		return nil
	}
	slot, err := s.locks.TakeUID(uid)
	if _, foreign := errors.AsType[*lease.RangeError](err); errors.Is(err, lease.ErrNoSlot) || foreign {
		return nil
	}
	switch {
	case err != nil:
		return err
	case slot.Dirty && filepath.Base(slot.Left) != box:
		return slot.Abandon()
	}
	if used, err := idsInUse(s.base(slot)); err != nil || used { // whatever the daemon said
		return errors.Join(err, slot.Abandon())
	}
	return slot.Release()
}

// maxBusySlots is the number of ranges in use by strangers before that is an error.
const maxBusySlots = 16

// take returns a range that no process has. What a killed host program left in it is destroyed first.
func (s *slots) take(ctx context.Context, destroy func(ctx context.Context, left string) error) (_ *lease.Slot, err error) {
	var busy []*lease.Slot
	defer func() {
		for _, slot := range busy {
			err = errors.Join(err, slot.Abandon())
		}
	}()
	for len(busy) < maxBusySlots {
		slot, err := s.locks.Take()
		if err != nil {
			return nil, err
		}
		if !slot.Dirty {
			return slot, nil
		}
		if slot.Left != "" {
			err = destroy(ctx, filepath.Base(slot.Left))
		}
		used, lookErr := idsInUse(s.base(slot))
		if err == nil && lookErr == nil && !used {
			return slot, nil
		}
		busy = append(busy, slot)
	}
	return nil, fmt.Errorf("the first %d id ranges are in use by other processes: set Config.IDs", maxBusySlots)
}

// idsInUse reports whether a process that we can see has an id of a range.
func idsInUse(base uint32) (bool, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return false, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		var st syscall.Stat_t
		if syscall.Stat("/proc/"+name, &st) == nil && st.Uid >= base && st.Uid-base < IDsPerBox {
			return true, nil
		}
	}
	return false, nil
}
