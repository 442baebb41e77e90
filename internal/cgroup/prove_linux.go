// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// proveTime bounds the removal of the trial groups.
const proveTime = time.Second

// trials are the limits that prove a controller: far below what any host has, far above what an empty group needs.
var trials = map[Controller]Limits{Memory: {Memory: 64 << 20}, Processes: {Processes: 8}, CPUs: {CPUs: 0.5}}

// prove makes one group in every place, tries each controller in it, and drops what does not work.
func (d *detector) prove(h *Host) {
	name := prefix + "probe-" + rand.Text()
	for i, p := range h.places {
		err := d.proveJoin(p)
		if err == nil {
			err = h.ops.mkdir(p.fd, name)
		}
		if err != nil {
			h.drop(i, fmt.Sprintf("no group can be made in %s: %v", p.dir, err))
			continue
		}
		g := dir{parent: p.fd, name: name, path: p.dir + "/" + name, version: p.version, ops: h.ops}
		d.provePlace(h, i, &g)
		ctx, cancel := context.WithTimeout(context.Background(), proveTime)
		if err := g.remove(ctx); err != nil {
			h.drop(i, err.Error())
		}
		cancel()
	}
	h.killByLimit()
	h.compact()
}

// proveJoin: to move a process down, v2 wants the right to write to the nearest common ancestor as well.
func (d *detector) proveJoin(p place) error {
	if p.version == 1 {
		return nil
	}
	if err := unix.Faccessat(p.fd, "cgroup.procs", unix.W_OK, 0); err != nil {
		return fail("access", p.dir+"/cgroup.procs", err)
	}
	return nil
}

func (d *detector) provePlace(h *Host, index int, g *dir) {
	if err := g.open(); err != nil {
		h.drop(index, err.Error())
		return
	}
	defer g.close()
	for c := range endOfControllers {
		if h.at[c] != index+1 {
			continue
		}
		if err := d.proveController(h, g, c); err != nil {
			h.at[c], h.why[c] = 0, fmt.Sprintf("%s: %v", h.places[index].dir, err)
		}
	}
}

func (d *detector) proveController(h *Host, g *dir, c Controller) error {
	file := joinFile(g.version)
	fd, err := openFile(g.fd, file, unix.O_WRONLY)
	if err != nil {
		return fail("open", g.path+"/"+file, err)
	}
	unix.Close(fd)
	if g.version == 2 {
		if kind, err := readFile(g.fd, "cgroup.type"); err != nil || string(kind) != "domain\n" {
			return fmt.Errorf("the type of a new group is %q (%v), want domain", kind, err)
		}
	}
	switch c {
	case Kill:
		return g.ops.order(g.fd, "cgroup.kill", "1")
	}
	var set Set
	if err := h.limit(g, c, trials[c], &set); err != nil {
		return err
	}
	return (&counters{}).prove(g, c)
}

// killByLimit: where the kernel has no kill file, a task limit of 0 stops a group from growing, and what cannot grow can
// be killed one by one.
func (h *Host) killByLimit() {
	if h.at[Kill] == 0 {
		h.at[Kill] = h.at[Processes]
		if h.at[Kill] == 0 {
			h.why[Kill] = "neither a cgroup.kill file nor a limit on processes is available; " + h.why[Processes]
		}
	}
}

func (h *Host) drop(index int, why string) {
	for c := range endOfControllers {
		if h.at[c] == index+1 {
			h.at[c], h.why[c] = 0, why
		}
	}
}

// compact closes the places that no controller needs.
func (h *Host) compact() {
	var kept []place
	for i, p := range h.places {
		used := false
		for c := range endOfControllers {
			if h.at[c] == i+1 {
				h.at[c], used = len(kept)+1, true
			}
		}
		if used {
			kept = append(kept, p)
		} else {
			unix.Close(p.fd)
		}
	}
	h.places = kept
}
