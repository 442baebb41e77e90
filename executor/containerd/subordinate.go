// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"strconv"
	"strings"
)

// subordinate reads one line of /etc/subuid.
func subordinate(line string) (user string, from, count uint64, ok bool) {
	f := strings.Split(line, ":")
	if len(f) < 3 {
		return "", 0, 0, false
	}
	from, err1 := strconv.ParseUint(f[1], 10, 32)
	count, err2 := strconv.ParseUint(f[2], 10, 32)
	return f[0], from, count, err1 == nil && err2 == nil && count > 0
}
