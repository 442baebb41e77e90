// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"fmt"
	"regexp"
	"strconv"
)

// version is a release number. Pre is what stands behind it: "rc.3", or empty.
type version struct {
	major, minor, patch int
	pre                 string
}

func (v version) String() string {
	text := fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.patch)
	if v.pre != "" {
		text += "-" + v.pre
	}
	return text
}

// A Debian version has a "~" or "+" with the packager's mark behind the number; a vendor's build a "+".
var versionPattern = regexp.MustCompile(`(?:^|[\sv])(\d{1,4})\.(\d{1,4})\.(\d{1,4})(?:-(rc\.?\d{1,3}|beta\.?\d{1,3}|alpha\.?\d{1,3}))?`)

// parseVersion finds the first release number of a text.
func parseVersion(text string) (version, bool) {
	m := versionPattern.FindStringSubmatch(text)
	if m == nil {
		return version{}, false
	}
	var v version
	for i, to := range []*int{&v.major, &v.minor, &v.patch} {
		n, err := strconv.Atoi(m[i+1])
		if err != nil {
			return version{}, false
		}
		*to = n
	}
	v.pre = m[4]
	return v, true
}

// less compares; a pre-release comes before its release.
func (v version) less(w version) bool {
	switch {
	case v.major != w.major:
		return v.major < w.major
	case v.minor != w.minor:
		return v.minor < w.minor
	case v.patch != w.patch:
		return v.patch < w.patch
	case v.pre == "" || w.pre == "":
		return v.pre != "" && w.pre == ""
	}
	return preNumber(v.pre) < preNumber(w.pre)
}

// preNumber orders alpha, beta and rc, and counts within each.
func preNumber(pre string) int {
	kind, n := 0, 0
	for _, r := range pre {
		if r >= '0' && r <= '9' {
			n = n*10 + int(r-'0')
		}
	}
	switch pre[0] {
	case 'b':
		kind = 1
	case 'r':
		kind = 2
	}
	return kind*10_000 + n
}

// oldestDaemon is the first release that this package was tried with.
var oldestDaemon = version{1, 6, 20, ""}

// runcFloor holds, for each branch, the release without the breakouts of November 2025: CVE-2025-31133, CVE-2025-52565 and
// CVE-2025-52881 (https://github.com/opencontainers/runc/security/advisories). Branches before 1.2 never got the fixes,
// those after 1.4 had them from the start. What a distribution has mended under an old number cannot be told from here.
var runcFloor = map[[2]int]version{
	{1, 2}: {1, 2, 8, ""}, {1, 3}: {1, 3, 3, ""}, {1, 4}: {1, 4, 0, "rc.3"},
}

// belowFloor reports whether this runc has known breakouts.
func belowFloor(v version) bool {
	if floor, branch := runcFloor[[2]int{v.major, v.minor}]; branch {
		return v.less(floor)
	}
	return v.less(version{1, 5, 0, "rc.0"})
}
