// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// v2Names are the kernel's names of the controllers that a v2 group has only if its parent hands them down.
var v2Names = []named{{Memory, "memory"}, {Processes, "pids"}, {CPUs, "cpu"}}

// howToDelegate is the way out for callers whose own group cannot hand controllers down, because it holds processes.
const howToDelegate = "start the program in a subgroup of a delegated group, with systemd: " +
	"systemd-run -p Delegate=yes -p DelegateSubgroup=main …; in a container: move its processes into a child group first"

// unified adds a place in the v2 hierarchy. A process is in one group of it, so all its controllers come from one place:
// the one, from the caller's own group upwards, that hands down the most. Every group counts processor time and can be
// killed, so the place is of use even if nothing is handed down, as on hosts where v1 has the controllers.
func (d *detector) unified(h *Host) {
	m, mounted := find(d.mounts, "")
	own, known := d.own[""]
	if !mounted || !known {
		return
	}
	dir, visible := m.below(own)
	if !visible {
		for c := range endOfControllers {
			h.why[c] = fmt.Sprintf("the caller's group %s is outside of what is mounted at %s", own, m.dir)
		}
		return
	}
	best, most := "", []Controller(nil)
	for i, candidate := range d.candidates(m, dir) {
		handed := d.handedDown(h, candidate)
		if i == 0 || len(handed) > len(most) {
			best, most = candidate, handed
		}
	}
	d.add(h, best, 2, append(most, CPUTime, Kill)...)
}

// candidates yields the caller's own group and then its ancestors as far as they were delegated to the caller.
func (d *detector) candidates(m mount, own string) []string {
	list := []string{own}
	for dir := own; dir != m.dir; {
		dir = filepath.Dir(dir)
		if !d.delegated(dir) {
			break
		}
		list = append(list, dir)
	}
	return list
}

// delegated: an ordinary caller was given what belongs to it. To root everything is writable, so that proves nothing;
// root goes by systemd's mark, and by a namespace of its own, whose groups are all the container's.
func (d *detector) delegated(dir string) bool {
	if d.uid != 0 {
		var st unix.Stat_t
		return unix.Stat(dir, &st) == nil && int(st.Uid) == d.uid &&
			unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil
	}
	if d.namespace {
		return true
	}
	var value [8]byte
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := unix.Getxattr(dir, name, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// handedDown returns the controllers that children of dir have, after trying to hand down what dir itself has. That
// fails with EBUSY where dir holds processes.
func (d *detector) handedDown(h *Host, dir string) []Controller {
	available, handed := names(dir, "cgroup.controllers"), names(dir, "cgroup.subtree_control")
	var list []Controller
	for _, v := range v2Names {
		switch {
		case slices.Contains(handed, v.name):
		case !slices.Contains(available, v.name):
			h.why[v.c] = fmt.Sprintf("%s does not have the %s controller; %s", dir, v.name, howToDelegate)
			continue
		default:
			if err := d.handDown(dir, v.name); err != nil {
				h.why[v.c] = fmt.Sprintf("no delegation: %s does not hand down the %s controller (%v); %s",
					dir, v.name, err, howToDelegate)
				continue
			}
		}
		list = append(list, v.c)
	}
	return list
}

func (d *detector) handDown(dir, name string) error {
	fd, err := openDir(unix.AT_FDCWD, dir)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return d.ops.order(fd, "cgroup.subtree_control", "+"+name)
}

func names(dir, file string) []string {
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}
