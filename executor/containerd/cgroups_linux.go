// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroupFiles are the groups of boxes as this process sees them. In a container it sees none, or others: what is read
// here is only used if the group was found with the limit that it was given.
type cgroupFiles struct {
	at  map[string]string // by controller: where the root group is mounted; "" is that of version 2
	all []string          // every hierarchy
}

// findCgroups looks where the hierarchies are mounted.
func findCgroups(mountinfo string) cgroupFiles {
	c := cgroupFiles{at: map[string]string{}}
	for line := range strings.Lines(mountinfo) {
		left, right, _ := strings.Cut(line, " - ")
		mount, fs := strings.Fields(left), strings.Fields(right)
		const root, point = 3, 4
		if len(mount) <= point || len(fs) < 3 || mount[root] != "/" {
			continue
		}
		switch fs[0] {
		case "cgroup":
			for _, controller := range strings.Split(fs[2], ",") {
				c.at[controller] = mount[point]
			}
		case "cgroup2":
			c.at[""] = mount[point]
		default:
			continue
		}
		c.all = append(c.all, mount[point])
	}
	return c
}

// dirs are all directories of a group.
func (c cgroupFiles) dirs(group string) (list []string) {
	for _, mount := range c.all {
		list = append(list, mount+group)
	}
	return list
}

// file returns the path of a control file of a group.
func (c cgroupFiles) file(group, controller, name string) string {
	dir, v1 := c.at[controller]
	if !v1 {
		dir = c.at[""]
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, group, name)
}

// number reads a file that holds one number.
func (c cgroupFiles) number(group, controller, name string) (int64, bool) {
	path := c.file(group, controller, name)
	if path == "" {
		return 0, false
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// refusedTasks is how often the kernel refused to make a task because of the group's limit.
func (c cgroupFiles) refusedTasks(group string) int64 {
	path := c.file(group, "pids", "pids.events")
	if path == "" {
		return 0
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "max "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}

// keepTries bounds how often an executor that closes may be quicker.
const keepTries = 100

// keep makes an empty group of an executor in the common parent, in every hierarchy that lets us. As long as it is
// there the kernel refuses to remove the parent: not even between two steps of a runtime that makes a box in it can
// another executor take it away. Where we may not make one, forget cannot remove anything either.
func (c cgroupFiles) keep(parent, own string) {
	for _, dir := range c.dirs(parent) {
		for range keepTries {
			_ = os.Mkdir(dir, 0o755)
			err := os.Mkdir(filepath.Join(dir, own), 0o755)
			if err == nil || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrPermission) {
				break
			} // else the parent went away meanwhile, which the kernel says in several ways
		}
	}
}

// forget removes an executor's own group and the common parent, if nobody else has anything in it: the kernel refuses
// otherwise.
func (c cgroupFiles) forget(parent, own string) {
	for _, dir := range c.dirs(parent) {
		_ = os.Remove(filepath.Join(dir, own))
		_ = os.Remove(dir)
	}
}
