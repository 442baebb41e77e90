// SPDX-License-Identifier: Apache-2.0

package bubblewrap

import (
	"fmt"
	"os"
	"strings"
)

// readFacts looks at what may have kept bubblewrap from working.
func readFacts() facts {
	sysctl := func(name string) string {
		text, err := os.ReadFile("/proc/sys/" + name)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	}
	return facts{
		maxUserNamespaces: sysctl("user/max_user_namespaces"),
		userNSClone:       sysctl("kernel/unprivileged_userns_clone"),
		appArmor:          sysctl("kernel/apparmor_restrict_unprivileged_userns"),
		seccomp:           statusField("Seccomp"),
		procOver:          overProc(),
	}
}

// mapsAll reports whether a uid_map or gid_map has an id of its own for each of a range.
func mapsAll(text string, first, count int) bool {
	for line := range strings.Lines(text) {
		var inside, outside, size int
		if n, err := fmt.Sscan(line, &inside, &outside, &size); n != 3 || err != nil {
			return false
		}
		if first >= inside && first+count <= inside+size {
			return true
		}
	}
	return false
}

func statusField(name string) string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// overProc names the first mount below /proc.
func overProc() string {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		const mountPoint = 4
		if f := strings.Fields(line); len(f) > mountPoint && strings.HasPrefix(f[mountPoint], "/proc/") {
			return f[mountPoint]
		}
	}
	return ""
}
