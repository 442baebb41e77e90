// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// The waits of the loops that wait for the kernel grow from the first to the last.
const (
	firstWait = 100 * time.Microsecond
	lastWait  = 5 * time.Millisecond
)

// Kill ends every process of the group and returns when the kernel lists none. It may be called at any time and again.
func (g *Group) Kill(ctx context.Context) error {
	dirs, err := g.hold()
	if err != nil {
		return err
	}
	defer release(dirs)
	return kill(ctx, dirs)
}

// hold returns the directories that still exist, with descriptors of their own: Remove may close the group's meanwhile.
func (g *Group) hold() (dirs []dir, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range g.dirs {
		if d.gone {
			continue
		}
		if d.fd, err = unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 3); err != nil {
			release(dirs)
			return nil, fail("dup", d.path, err)
		}
		dirs = append(dirs, d)
	}
	return dirs, nil
}

func release(dirs []dir) {
	for i := range dirs {
		dirs[i].close()
	}
}

// kill first stops the group from growing, where it can, then kills whoever is listed until nobody is.
func kill(ctx context.Context, dirs []dir) error {
	for i := range dirs {
		d := &dirs[i]
		// Either file may be absent; the listing below decides.
		_ = d.ops.order(d.fd, "pids.max", "0")
		if d.version == 2 {
			_ = d.ops.order(d.fd, "cgroup.kill", "1")
		}
	}
	var left int
	err := until(ctx, func() (bool, error) {
		left = 0
		for i := range dirs {
			n, err := killMembers(dirs[i].fd, dirs[i].path, 0)
			if err != nil {
				return false, err
			}
			left += n
		}
		return left == 0, nil
	})
	if err != nil && left > 0 {
		return fmt.Errorf("cgroup: %s: %d processes live on: %w", dirs[0].path, left, err)
	}
	return err
}

// until calls step until it says that it is done, fails, or ctx ends. It always calls it once.
func until(ctx context.Context, step func() (done bool, err error)) error {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		done, err := step()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// maxDepth bounds the descent into groups that a run made inside its own.
const maxDepth = 32

// killMembers kills the processes of a directory and of those below it, and returns how many it found. Only a descriptor
// of the process is signalled, and only if the group lists the process after the descriptor was opened: a number alone
// may have passed to a stranger meanwhile.
func killMembers(fd int, path string, depth int) (int, error) {
	pids, err := members(fd)
	if err != nil {
		return 0, fail("read", path+"/cgroup.procs", err)
	}
	found := len(pids)
	if found > 0 {
		if err := killPids(fd, path, pids); err != nil {
			return found, err
		}
	}
	err = children(fd, path, depth, func(child int, childPath string) error {
		n, err := killMembers(child, childPath, depth+1)
		found += n
		return err
	})
	return found, err
}

func killPids(fd int, path string, pids []int) error {
	handles := make(map[int]int, len(pids))
	defer func() {
		for _, handle := range handles {
			unix.Close(handle)
		}
	}()
	for _, pid := range pids {
		if pid <= 0 { // the kernel shows 0 for what has no number in our pid namespace
			return fmt.Errorf("cgroup: %s holds a process of another pid namespace, which cannot be killed from here", path)
		}
		handle, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
			break // the rest in the next round
		}
		if err == nil {
			handles[pid] = handle
		}
	}
	again, err := members(fd)
	if err != nil {
		return fail("read", path+"/cgroup.procs", err)
	}
	for _, pid := range again {
		handle, held := handles[pid]
		if !held {
			continue
		}
		if err := unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0); errors.Is(err, unix.EPERM) {
			return fmt.Errorf("cgroup: %s: process %d: %w", path, pid, err)
		}
	}
	return nil
}

// members lists the processes of one directory.
func members(dir int) ([]int, error) {
	fd, err := openFile(dir, "cgroup.procs", unix.O_RDONLY)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) { // the group was removed meanwhile
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var text []byte
	var buf [4096]byte
	for {
		n, err := retry(func() (int, error) { return unix.Read(fd, buf[:]) })
		if errors.Is(err, unix.ENODEV) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
		text = append(text, buf[:n]...)
	}
	var pids []int
	for line := range bytes.Lines(text) {
		pid, err := number(line)
		if err != nil {
			return nil, err
		}
		pids = append(pids, int(pid))
	}
	return pids, nil
}
