// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// mount is one mounted hierarchy.
type mount struct {
	dir         string   // where it is mounted
	root        string   // which group of the hierarchy is seen at dir
	controllers []string // of a v1 hierarchy
	version     int
}

// parseMounts picks the control group hierarchies out of /proc/self/mountinfo. A line is
//
//	36 25 0:31 /root /dir rw,relatime shared:1 - cgroup cgroup rw,cpu,cpuacct
//
// with any number of fields before the lone "-".
func parseMounts(text string) []mount {
	var mounts []mount
	for line := range strings.Lines(text) {
		left, right, found := strings.Cut(line, " - ")
		at, fs := strings.Fields(left), strings.Fields(right)
		if !found || len(at) < 5 || len(fs) < 3 {
			continue
		}
		m := mount{root: unescape(at[3]), dir: unescape(at[4])}
		switch fs[0] {
		case "cgroup2":
			m.version = 2
		case "cgroup":
			m.version, m.controllers = 1, strings.Split(fs[2], ",")
		default:
			continue
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// unescape undoes the octal escapes (\040 for a blank) of mountinfo.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// parseOwn maps every v1 controller to the caller's group in its hierarchy, and "" to the one in the unified hierarchy.
// A line of /proc/self/cgroup is "4:cpu,cpuacct:/group"; the group may contain colons.
func parseOwn(text string) map[string]string {
	own := map[string]string{}
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			own[controller] = parts[2]
		}
	}
	return own
}

// below translates a group of the hierarchy into a directory. It fails for a group that the mount does not show, as for
// a container that sees only part of the hierarchy.
func (m mount) below(group string) (string, bool) {
	group = path.Clean("/" + group)
	if m.root == "/" {
		return path.Join(m.dir, group), true
	}
	rest, found := strings.CutPrefix(group, m.root)
	if !found || rest != "" && rest[0] != '/' {
		return "", false
	}
	return path.Join(m.dir, rest), true
}

// find returns the v1 mount of a controller, or with "" the unified one. The last mount on a directory covers those
// before it, so it is looked for from the end.
func find(mounts []mount, controller string) (mount, bool) {
	for _, m := range slices.Backward(mounts) {
		if controller == "" && m.version == 2 || controller != "" && slices.Contains(m.controllers, controller) {
			return m, true
		}
	}
	return mount{}, false
}
