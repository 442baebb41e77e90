// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervise

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// PollerAtInit reports whether the runtime had its poller before this package registered its stages. It is a package
// variable, since these come before every init function: what another package's initialiser may do before ours, this does
// in every process of the tests, and so in the server.
var PollerAtInit = startTimer()

func startTimer() bool {
	time.AfterFunc(time.Hour, func() {})
	fds, _ := filepath.Glob("/proc/self/fd/*")
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.Contains(to, "eventpoll") {
			return true
		}
	}
	return false
}
