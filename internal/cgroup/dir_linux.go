// SPDX-License-Identifier: Apache-2.0

package cgroup

import "golang.org/x/sys/unix"

// dir is one directory of a group: the whole group in v2, the part of one or more controllers in v1. It is reached from
// its parent's descriptor, never again by its path, which is for messages.
type dir struct {
	ops     ops
	parent  int
	name    string
	path    string
	version int
	fd      int  // of the directory itself once opened, else 0
	gone    bool // it was removed
}

func (d *dir) open() error {
	fd, err := openDir(d.parent, d.name)
	if err != nil {
		return fail("open", d.path, err)
	}
	d.fd = fd
	return nil
}

func (d *dir) close() {
	if d.fd > 0 {
		unix.Close(d.fd)
		d.fd = 0
	}
}
