// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Remove removes the directories of the group and closes its files. A group that still has processes cannot be removed;
// the kernel also answers EBUSY for a moment after the last one died, so Remove tries until ctx ends. After an error it
// may be called again; after success it does nothing.
func (g *Group) Remove(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.join {
		f.Close()
	}
	g.join = nil
	if g.into != nil {
		g.into.Close()
		g.into = nil
	}
	g.counters.close()
	var errs []error
	for i := range g.dirs {
		d := &g.dirs[i]
		if d.gone {
			continue
		}
		if err := d.remove(ctx); err != nil {
			errs = append(errs, err)
			continue
		}
		d.close()
		d.gone = true
	}
	return errors.Join(errs...)
}

// remove removes the directory, and first what a run made inside it. One that is gone already is a success.
func (d *dir) remove(ctx context.Context) error {
	err := until(ctx, func() (bool, error) {
		err := d.ops.rmdir(d.parent, d.name)
		switch {
		case err == nil || errors.Is(err, unix.ENOENT):
			return true, nil
		case errors.Is(err, unix.EBUSY):
			d.removeInside()
			return false, nil
		}
		return false, err
	})
	if err != nil {
		return fail("rmdir", d.path, err)
	}
	return nil
}

func (d *dir) removeInside() {
	if fd, err := openDir(d.parent, d.name); err == nil {
		_ = removeChildren(d.ops, fd, d.path, 0) // what stays shows in the next rmdir
		unix.Close(fd)
	}
}

func removeChildren(o ops, fd int, path string, depth int) error {
	return children(fd, path, depth, func(child int, childPath string) error {
		if err := removeChildren(o, child, childPath, depth+1); err != nil {
			return err
		}
		return o.rmdir(fd, childPath[strings.LastIndexByte(childPath, '/')+1:])
	})
}

// children calls f with every directory below fd. A link count of 2 tells without a listing that there is none.
func children(fd int, dirPath string, depth int, f func(child int, childPath string) error) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Nlink <= 2 {
		return nil
	}
	if depth >= maxDepth {
		return fmt.Errorf("cgroup: %s: more than %d groups inside one another", dirPath, maxDepth)
	}
	listing, err := openDir(fd, ".") // a descriptor of its own, for its own position
	if err != nil {
		return fail("open", dirPath, err)
	}
	defer unix.Close(listing)
	var names []string
	buf := make([]byte, 8192)
	for {
		n, err := retry(func() (int, error) { return unix.ReadDirent(listing, buf) })
		if err != nil {
			return fail("read", dirPath, err)
		}
		if n == 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	for _, name := range names {
		child, err := openDir(fd, name) // fails for files
		if err != nil {
			continue
		}
		err = f(child, path.Join(dirPath, name))
		unix.Close(child)
		if err != nil {
			return err
		}
	}
	return nil
}
