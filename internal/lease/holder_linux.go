// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// holderDead reports whether the process that took the lease is certainly dead. That is no evidence that the lease is
// free, only a reason to try its lock again: a child that the holder was just starting has a copy of the descriptor
// until it executes its program, and may live a moment longer than the holder.
func holderDead(rec Record, bootID string) bool {
	if rec.PID <= 0 || rec.BootID != bootID {
		return rec.BootID != bootID
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", rec.PID))
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		return false
	}
	if state := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:]); len(state) > 0 && (state[0][0] == 'Z' || state[0][0] == 'X') {
		return true
	}
	start, err := StartTime(rec.PID)
	return err == nil && start != rec.StartTime
}

// dying reports whether the lease's lock is held although its holder is dead.
func (d *Dir) dying(name, bootID string) bool {
	if !validID(name) {
		return false
	}
	data, err := os.ReadFile(d.dir.join(name))
	if err != nil {
		return false
	}
	rec, err := decode(name, data)
	return err == nil && holderDead(rec, bootID)
}
