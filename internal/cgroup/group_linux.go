// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Group is the control group of one run. Its methods may be called by several goroutines.
type Group struct {
	host *Host
	set  Set

	mu       sync.Mutex // guards what follows; Kill does not hold it while it waits
	join     []*os.File // one per directory
	into     *os.File   // the directory of version 2; nil if there is none
	dirs     []dir      // in the order of host.places
	counters counters
}

// Create makes a group with the limits whose controllers the host has. If it fails, nothing is left. The caller removes
// the group with Remove.
func (h *Host) Create(name string, l Limits) (*Group, error) {
	b, err := base(name)
	if err != nil {
		return nil, err
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	g := &Group{host: h, dirs: make([]dir, 0, len(h.places)), join: make([]*os.File, 0, len(h.places))}
	for i := range h.places {
		if err := g.make(i, b, l); err != nil {
			ctx, cancel := context.WithTimeout(context.Background(), proveTime)
			defer cancel()
			return nil, errors.Join(err, g.Remove(ctx))
		}
	}
	return g, nil
}

func (g *Group) make(index int, name string, l Limits) error {
	h := g.host
	p := h.places[index]
	d := dir{ops: h.ops, parent: p.fd, name: name, path: path.Join(p.dir, name), version: p.version}
	if err := h.ops.mkdir(p.fd, name); err != nil { // what exists already is somebody else's
		return fail("mkdir", d.path, err)
	}
	g.dirs = append(g.dirs, d)
	last := &g.dirs[len(g.dirs)-1]
	if err := last.open(); err != nil {
		return err
	}
	for c := range endOfControllers {
		if h.at[c] == index+1 {
			if err := h.limit(last, c, l, &g.set); err != nil {
				return err
			}
		}
	}
	file := joinFile(d.version)
	fd, err := openFile(last.fd, file, unix.O_WRONLY)
	if err != nil {
		return fail("open", last.path+"/"+file, err)
	}
	g.join = append(g.join, os.NewFile(uintptr(fd), last.path+"/"+file))
	if d.version != 2 {
		return nil
	}
	if fd, err = openFile(p.fd, name, unix.O_RDONLY|unix.O_DIRECTORY); err != nil {
		return fail("open", last.path, err)
	}
	g.into = os.NewFile(uintptr(fd), last.path)
	return nil
}

// Into is the cheap way in for a process that is about to be made: a directory for clone3 with CLONE_INTO_CGROUP, nil if
// the group has none of version 2, and the files for the other directories, as JoinFiles has them. Like those the files
// stay the group's.
func (g *Group) Into() (dir *os.File, files []*os.File) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, d := range g.dirs {
		if d.version != 2 && i < len(g.join) {
			files = append(files, g.join[i])
		}
	}
	return g.into, files
}

// joinFile names the file that takes the writer in. Moving a whole process makes the kernel wait for every processor
// (measured: 2 to 5 ms for each hierarchy); a thread that moves itself alone does not, and version 1 can do that.
func joinFile(version int) string {
	if version == 1 {
		return "tasks"
	}
	return "cgroup.procs"
}

// Set returns the limits that the kernel reported back.
func (g *Group) Set() Set { return g.set }

// JoinFiles returns files that are open for writing, one per directory of the group. A process with one
// thread that writes "0" to each of them is in the group, with what it starts from then on; of one with more threads, only
// the writing one is sure to be. The files stay the group's; they are closed by Remove.
func (g *Group) JoinFiles() []*os.File {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.join)
}

// Dirs returns the directories of the group.
func (g *Group) Dirs() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	paths := make([]string, len(g.dirs))
	for i, d := range g.dirs {
		paths[i] = d.path
	}
	return paths
}

// dir returns the directory that has a controller, or nil. The caller holds mu.
func (g *Group) dir(c Controller) *dir {
	if at := g.host.at[c]; at > 0 && at <= len(g.dirs) && !g.dirs[at-1].gone {
		return &g.dirs[at-1]
	}
	return nil
}

// CPUTime returns the processor time that the group has used up to now. It is cheap, one read of an open file, and false
// if the host cannot count or the group was removed.
func (g *Group) CPUTime() (time.Duration, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.dir(CPUTime)
	if d == nil {
		return 0, false
	}
	used, err := g.counters.used(d)
	return used, err == nil
}

// CPUTimes is CPUTime with its two parts, in user mode and in the kernel.
func (g *Group) CPUTimes() (total, user, system time.Duration, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.dir(CPUTime)
	if d == nil {
		return 0, 0, 0, false
	}
	total, user, system, err := g.counters.cpu(d)
	return total, user, system, err == nil
}
