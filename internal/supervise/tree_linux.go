// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// userHZ is the unit of times in /proc; the kernel fixes it at 100 for user space.
const userHZ = 100

// task is what /proc/PID/stat says about a process.
type task struct {
	pid, ppid, threads int
	state              byte
	own, waited        time.Duration // CPU time of the process, and of the children that it waited for
	start              uint64
}

// tree finds the descendants of a process.
type tree struct {
	tasks    map[int]task
	children map[int][]int
}

// read looks at every process that /proc shows. One that ends meanwhile is not there, which is what it is.
func (t *tree) read() error {
	list, err := pids()
	if err != nil {
		return err
	}
	t.tasks, t.children = map[int]task{}, map[int][]int{}
	for _, pid := range list {
		if one, ok := readTask(pid); ok {
			t.tasks[pid] = one
			t.children[one.ppid] = append(t.children[one.ppid], pid)
		}
	}
	return nil
}

// pids returns every process that /proc lists, sorted.
func pids() (list []int, err error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			list = append(list, pid)
		}
	}
	slices.Sort(list)
	return list, nil
}

// below returns the descendants of root, parents first.
func (t *tree) below(root int) []task {
	var list []task
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, pid := range t.children[queue[0]] {
			list = append(list, t.tasks[pid])
			queue = append(queue, pid)
		}
	}
	return list
}

// kill sends SIGKILL to every descendant of root that it sees. A pid may be given to another process at any time, so the
// signal goes through a pidfd, and only after the process behind it was seen to be the same as before.
func (t *tree) kill(root int) {
	if t.read() != nil {
		return
	}
	for _, one := range t.below(root) {
		fd, err := unix.PidfdOpen(one.pid, 0)
		if err != nil {
			continue
		}
		if now, ok := readTask(one.pid); ok && now.start == one.start {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		unix.Close(fd)
	}
}

func readTask(pid int) (task, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return task{}, false
	}
	return parseTask(pid, data)
}

// parseTask reads the fields behind the command name, which is in parentheses and may hold anything, parentheses too.
func parseTask(pid int, stat []byte) (task, bool) {
	i := bytes.LastIndexByte(stat, ')')
	if i < 0 {
		return task{}, false
	}
	f := bytes.Fields(stat[i+1:])
	const need = 20 // fields 3 to 22 of proc_pid_stat(5)
	if len(f) < need || len(f[0]) != 1 {
		return task{}, false
	}
	var bad bool
	num := func(field int) int64 {
		v, err := strconv.ParseInt(string(f[field-3]), 10, 64)
		bad = bad || err != nil
		return v
	}
	ticks := func(a, b int) time.Duration { return time.Duration(num(a)+num(b)) * time.Second / userHZ }
	one := task{
		pid: pid, state: f[0][0], ppid: int(num(4)), own: ticks(14, 15), waited: ticks(16, 17),
		threads: int(num(20)), start: uint64(num(22)),
	}
	return one, !bad
}
