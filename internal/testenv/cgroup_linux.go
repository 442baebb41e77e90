// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// cgroupMount is one mounted hierarchy.
type cgroupMount struct {
	dir         string   // where it is mounted
	root        string   // which of its cgroups is at dir
	controllers []string // v1 only: the controllers of the hierarchy
	v2          bool
}

// probeCgroup makes a cgroup that bounds memory and one that bounds tasks, as a caller that wants to put its own
// children into them would, and removes both.
func probeCgroup() error {
	mounts, err := cgroupMounts("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	own, err := ownCgroups("/proc/self/cgroup")
	if err != nil {
		return err
	}
	errV2 := errors.New("no unified hierarchy is mounted")
	for _, m := range mounts {
		if m.v2 {
			if errV2 = tryV2(m, own[""]); errV2 == nil {
				return nil
			}
		}
	}
	errV1 := errors.Join(tryV1(mounts, own, "memory", "memory.limit_in_bytes"), tryV1(mounts, own, "pids", "pids.max"))
	if errV1 == nil {
		return nil
	}
	return fmt.Errorf("v2: %w; v1: %w", errV2, errV1)
}

// tryV2 looks from the caller's own cgroup upward for one that hands both controllers to its children and lets the
// caller move processes below it. A cgroup that holds processes cannot hand anything out, so it is seldom the
// caller's own.
func tryV2(m cgroupMount, own string) error {
	problem := fmt.Errorf("%s is outside the mount at %s", own, m.dir)
	for dir := m.below(own); strings.HasPrefix(dir, m.dir); dir = filepath.Dir(dir) {
		handed, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if err != nil {
			return err
		}
		names := strings.Fields(string(handed))
		if !slices.Contains(names, "memory") || !slices.Contains(names, "pids") {
			problem = fmt.Errorf("%s does not delegate memory and pids", dir)
			continue
		}
		if problem = tryCgroup(dir, "memory.max", "pids.max"); problem == nil {
			return nil
		}
	}
	return problem
}

func tryV1(mounts []cgroupMount, own map[string]string, controller, file string) error {
	for _, m := range mounts {
		if !m.v2 && slices.Contains(m.controllers, controller) {
			return tryCgroup(m.below(own[controller]), file)
		}
	}
	return fmt.Errorf("the %s controller is not mounted", controller)
}

// tryCgroup makes a child of parent, demands the control files in it and removes it.
func tryCgroup(parent string, files ...string) error {
	const writable = 2 // W_OK
	procs := filepath.Join(parent, "cgroup.procs")
	if err := syscall.Access(procs, writable); err != nil {
		return &os.PathError{Op: "access", Path: procs, Err: err}
	}
	child, err := os.MkdirTemp(parent, "testenv-probe-")
	if err != nil {
		return err
	}
	for _, name := range files {
		file := filepath.Join(child, name)
		if accessErr := syscall.Access(file, writable); accessErr != nil {
			err = errors.Join(err, &os.PathError{Op: "access", Path: file, Err: accessErr})
		}
	}
	return errors.Join(err, os.Remove(child))
}

// below translates a path of /proc/self/cgroup into the file system. A container may see a path that is not below what
// it has mounted; then the mount point itself stands for it.
func (m cgroupMount) below(path string) string {
	rel, err := filepath.Rel(m.root, path)
	if err != nil || !filepath.IsLocal(rel) {
		return m.dir
	}
	dir := filepath.Join(m.dir, rel)
	if _, err := os.Stat(dir); err != nil {
		return m.dir
	}
	return dir
}

// ownCgroups maps each controller to the caller's cgroup; the unified hierarchy stands under "".
func ownCgroups(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	own := map[string]string{}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			own[controller] = parts[2]
		}
	}
	return own, nil
}

func cgroupMounts(file string) ([]cgroupMount, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var mounts []cgroupMount
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// "36 25 0:31 /root /dir options… - type source superoptions"
		left, right, _ := strings.Cut(lines.Text(), " - ")
		mount, fs := strings.Fields(left), strings.Fields(right)
		if len(mount) < 5 || len(fs) < 3 || !strings.HasPrefix(fs[0], "cgroup") {
			continue
		}
		mounts = append(mounts, cgroupMount{
			dir: mount[4], root: mount[3], v2: fs[0] == "cgroup2", controllers: strings.Split(fs[2], ","),
		})
	}
	return mounts, lines.Err()
}
