// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Ids that no range may contain.
const (
	minUID   = 1000           // below are the system's own users
	nobody   = 65534          // everybody's "nobody", and what the kernel shows for ids that it cannot map
	noUID16  = 65535          // "no change" of the 16-bit calls
	noUID    = math.MaxUint32 // "no change" of the others
	maxSlots = 1 << 16
)

// SlotConfig reserves a range of user ids. All supervisors of a host must use the same directory for a range, or two of them
// give the same id to two runs.
type SlotConfig struct {
	Dir   string // as for [Open], mode 0700
	Base  uint32 // the first id, at least 1000
	Count uint32 // the number of ids, 1 to 65,536
}

// contains reports whether uid is in the range; the arithmetic is wide enough for every value of the fields.
func (c SlotConfig) contains(uid uint64) bool {
	return uid >= uint64(c.Base) && uid < uint64(c.Base)+uint64(c.Count)
}

func (c SlotConfig) fault(uid uint64, rule string) error {
	return &RangeError{Base: c.Base, Count: c.Count, UID: uint32(uid), Rule: rule}
}

// checkRange judges the numbers alone.
func (c SlotConfig) checkRange(caller uint64) error {
	switch {
	case c.Count == 0 || c.Count > maxSlots:
		return c.fault(0, fmt.Sprintf("must be 1 to %d", maxSlots))
	case c.Base < minUID:
		return c.fault(uint64(c.Base), fmt.Sprintf("is below %d, where the system's own users are", minUID))
	case c.contains(nobody):
		return c.fault(nobody, "is nobody's, which other services use")
	case c.contains(noUID16):
		return c.fault(noUID16, "means no id at all to 16-bit system calls")
	case uint64(c.Base)+uint64(c.Count) > noUID:
		return c.fault(noUID, "means no id at all to the kernel")
	case c.contains(caller):
		return c.fault(caller, "is the caller's own")
	}
	return nil
}

// checkUsers reads the format of /etc/passwd: a user of this host must not share an id with a run.
func (c SlotConfig) checkUsers(passwd io.Reader) error {
	return eachLine(passwd, func(fields []string) error {
		if len(fields) < 3 {
			return nil
		}
		if uid, err := strconv.ParseUint(fields[2], 10, 32); err == nil && c.contains(uid) {
			return c.fault(uid, fmt.Sprintf("belongs to user %q in /etc/passwd", fields[0]))
		}
		return nil
	})
}

// checkSubordinate reads the format of /etc/subuid: the containers of ordinary users have these ids.
func (c SlotConfig) checkSubordinate(subuid io.Reader) error {
	return eachLine(subuid, func(fields []string) error {
		if len(fields) < 3 {
			return nil
		}
		first, err1 := strconv.ParseUint(fields[1], 10, 32)
		count, err2 := strconv.ParseUint(fields[2], 10, 32)
		if err1 != nil || err2 != nil || count == 0 {
			return nil
		}
		if last := first + count - 1; first < uint64(c.Base)+uint64(c.Count) && last >= uint64(c.Base) {
			return c.fault(max(first, uint64(c.Base)), fmt.Sprintf("is given to user %q in /etc/subuid", fields[0]))
		}
		return nil
	})
}

// eachLine calls f with the colon-separated fields of each line until f returns an error.
func eachLine(r io.Reader, f func(fields []string) error) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if err := f(strings.Split(lines.Text(), ":")); err != nil {
			return err
		}
	}
	return lines.Err()
}
