// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// The counter files. Descriptors are kept, because the processor time is read many times a second while a run lasts.
const (
	fileCPU = iota
	fileUser
	fileSystem
	fileOOM
	filePeakMemory
	fileTaskEvents
	filePeakTasks
	fileTasks

	endOfFiles
)

// fileNames has the names for version 1 and version 2; v2 keeps all processor times in one file.
var fileNames = [endOfFiles][2]string{
	fileCPU:        {"cpuacct.usage", "cpu.stat"},
	fileUser:       {"cpuacct.usage_user", ""},
	fileSystem:     {"cpuacct.usage_sys", ""},
	fileOOM:        {"memory.oom_control", "memory.events"},
	filePeakMemory: {"memory.max_usage_in_bytes", "memory.peak"},
	fileTaskEvents: {"pids.events", "pids.events"},
	filePeakTasks:  {"pids.peak", "pids.peak"},
	fileTasks:      {"pids.current", "pids.current"},
}

// counters reads the counters of one group. It is not safe for concurrent use.
type counters struct {
	fds [endOfFiles]int
	buf [1024]byte
}

func (k *counters) close() {
	for i, fd := range k.fds {
		if fd > 0 {
			unix.Close(fd)
			k.fds[i] = 0
		}
	}
}

func (k *counters) text(d *dir, file int) ([]byte, error) {
	if k.fds[file] == 0 {
		fd, err := openFile(d.fd, fileNames[file][d.version-1], unix.O_RDONLY)
		if err != nil {
			return nil, fail("open", d.path+"/"+fileNames[file][d.version-1], err)
		}
		k.fds[file] = fd
	}
	text, err := read(k.fds[file], k.buf[:])
	if err != nil {
		return nil, fail("read", d.path+"/"+fileNames[file][d.version-1], err)
	}
	return text, nil
}

// value reads a file that holds one number, or the number behind key.
func (k *counters) value(d *dir, file int, key string) (int64, error) {
	text, err := k.text(d, file)
	if err != nil {
		return 0, err
	}
	var v int64
	if key == "" {
		v, err = number(text)
	} else {
		v, err = field(text, key)
	}
	if err != nil {
		return 0, fail("parse", d.path+"/"+fileNames[file][d.version-1], err)
	}
	return v, nil
}

// optional is value, or -1 where the kernel does not have the file.
func (k *counters) optional(d *dir, file int) (int64, error) {
	v, err := k.value(d, file, "")
	if errors.Is(err, unix.ENOENT) {
		return -1, nil
	}
	return v, err
}

// used returns the processor time of all processes of the group, dead ones included.
func (k *counters) used(d *dir) (time.Duration, error) {
	if d.version == 1 {
		ns, err := k.value(d, fileCPU, "")
		return time.Duration(ns), err
	}
	us, err := k.value(d, fileCPU, "usage_usec")
	return time.Duration(us) * time.Microsecond, err
}

// cpu returns the processor time in all, in user mode and in the kernel.
func (k *counters) cpu(d *dir) (total, user, system time.Duration, err error) {
	var errs [3]error
	total, errs[0] = k.used(d)
	var u, s int64
	unit := time.Nanosecond
	if d.version == 1 {
		u, errs[1] = k.value(d, fileUser, "")
		s, errs[2] = k.value(d, fileSystem, "")
	} else {
		unit = time.Microsecond
		u, errs[1] = k.value(d, fileCPU, "user_usec")
		s, errs[2] = k.value(d, fileCPU, "system_usec")
	}
	return total, time.Duration(u) * unit, time.Duration(s) * unit, errors.Join(errs[:]...)
}

// prove reads what a controller must be able to count; a limit whose breach nobody can see is not offered.
func (k *counters) prove(d *dir, c Controller) (err error) {
	defer k.close()
	switch c {
	case Memory:
		_, err = k.value(d, fileOOM, "oom_kill")
	case Processes:
		_, err = k.value(d, fileTaskEvents, "max")
	case CPUTime:
		_, _, _, err = k.cpu(d)
	}
	return err
}
