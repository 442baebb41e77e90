// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// StartTime returns when the process started, in clock ticks after boot. Together with the boot id it tells a process
// from a later one with the same id.
func StartTime(pid int) (uint64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("lease: start time of process %d: %w", pid, err)
	}
	// The second field is the program's name in parentheses and may contain anything; the last parenthesis ends it.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	const startTime = 22 - 3 // the fields after the name begin with the third
	if len(fields) <= startTime {
		return 0, fmt.Errorf("lease: start time of process %d: /proc has %d fields", pid, len(fields))
	}
	start, err := strconv.ParseUint(string(fields[startTime]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("lease: start time of process %d: %w", pid, err)
	}
	return start, nil
}

// BootID returns the kernel's name for this boot.
func BootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("lease: boot id: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
