// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// TakeUID takes one certain id of the range, to clean up after the one who had it. It fails with [ErrNoSlot] if somebody
// has it, and if nobody ever had it.
func (s *Slots) TakeUID(uid uint32) (*Slot, error) {
	if !s.c.contains(uint64(uid)) {
		return nil, s.c.fault(uint64(uid), "is not in the range")
	}
	var st unix.Stat_t
	if err := unix.Fstatat(s.dir.fd, strconv.FormatUint(uint64(uid), 10), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, fmt.Errorf("lease: user id %d was never taken: %w", uid, ErrNoSlot)
	}
	slot, err := s.try(uid)
	switch {
	case err != nil:
		return nil, fmt.Errorf("lease: user id %d: %w", uid, err)
	case slot == nil:
		return nil, ErrNoSlot
	}
	return slot, nil
}
