// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"bytes"
	"strconv"
)

// parseUID returns the real uid in a /proc/PID/status file, or -1.
func parseUID(status []byte) int {
	for line := range bytes.Lines(status) {
		rest, ok := bytes.CutPrefix(line, []byte("Uid:"))
		if !ok {
			continue
		}
		if f := bytes.Fields(rest); len(f) > 0 {
			if uid, err := strconv.Atoi(string(f[0])); err == nil {
				return uid
			}
		}
		break
	}
	return -1
}
