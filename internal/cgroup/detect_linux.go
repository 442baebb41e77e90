// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// initCgroupNS is the inode of the machine's own control group namespace (PROC_CGROUP_INIT_INO).
const initCgroupNS = 0xEFFFFFFB

// detector is what the search for controllers knows. Tests give it a tree of plain files.
type detector struct {
	ops       ops
	proc      string // a /proc/self
	uid       int
	namespace bool // the caller lives in a control group namespace that is not the machine's
	mounts    []mount
	own       map[string]string
}

// named is a controller under the kernel's name.
type named struct {
	c    Controller
	name string
}

// v1Names are the kernel's v1 controllers; Kill has none of its own.
var v1Names = []named{{Memory, "memory"}, {Processes, "pids"}, {CPUs, "cpu"}, {CPUTime, "cpuacct"}}

// Detect finds out what this caller may use, by making and removing one group in every place. It changes nothing else,
// except that in a delegated v2 subtree it hands controllers down that were not handed down yet.
func Detect() *Host {
	d := detector{ops: kernel, proc: "/proc/self", uid: os.Geteuid()}
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/cgroup", &st); err == nil {
		d.namespace = st.Ino != initCgroupNS
	}
	return d.detect()
}

func (d *detector) detect() *Host {
	h := &Host{ops: d.ops, swap: hasSwap(filepath.Join(filepath.Dir(d.proc), "swaps"))}
	mountinfo, err := os.ReadFile(filepath.Join(d.proc, "mountinfo"))
	own, err2 := os.ReadFile(filepath.Join(d.proc, "cgroup"))
	if err != nil || err2 != nil {
		h.missing(fmt.Sprintf("/proc cannot be read (%v, %v); mount it", err, err2))
		return h
	}
	d.mounts, d.own = parseMounts(string(mountinfo)), parseOwn(string(own))
	h.missing("no control group hierarchy with this controller is mounted; mount one")
	d.unified(h)
	for _, v := range v1Names {
		if !h.Has(v.c) {
			d.v1(h, v.c, v.name)
		}
	}
	d.prove(h)
	return h
}

func (h *Host) missing(why string) {
	for c := range endOfControllers {
		h.why[c] = why
	}
}

// hasSwap: an unreadable list counts as swap, because then the memory limit needs its note.
func hasSwap(file string) bool {
	data, err := os.ReadFile(file)
	return err != nil || strings.Count(string(data), "\n") > 1
}

// v1 adds the caller's own group in the hierarchy of a controller as a place.
func (d *detector) v1(h *Host, c Controller, name string) {
	m, mounted := find(d.mounts, name)
	if !mounted {
		return
	}
	dir, visible := m.below(d.own[name])
	if !visible {
		h.why[c] = fmt.Sprintf("the caller's %s group %s is outside of what is mounted at %s; mount that part",
			name, d.own[name], m.dir)
		return
	}
	d.add(h, dir, 1, c)
}

// add makes a directory a place for the controllers, once.
func (d *detector) add(h *Host, dir string, version int, controllers ...Controller) {
	index := -1
	for i, p := range h.places {
		if p.dir == dir {
			index = i
		}
	}
	if index < 0 {
		fd, err := openDir(unix.AT_FDCWD, dir)
		if err != nil {
			for _, c := range controllers {
				h.why[c] = fmt.Sprintf("%s cannot be opened: %v", dir, err)
			}
			return
		}
		h.places = append(h.places, place{dir: dir, fd: fd, version: version})
		index = len(h.places) - 1
	}
	for _, c := range controllers {
		h.at[c] = index + 1
	}
}
