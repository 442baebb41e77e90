// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrName: the name of a group, or the path of a directory to be removed, is not one that this package makes.
var ErrName = errors.New("cgroup: not a name of a run's group")

// Controller is one thing that a group can do. Each is detected by itself.
type Controller uint8

// The controllers.
const (
	Memory    Controller = iota // bounds memory and swap, counts OOM kills
	Processes                   // bounds tasks and counts refusals
	CPUs                        // bounds the processors in use
	CPUTime                     // counts processor time
	Kill                        // ends every process of the group, however fast it forks

	endOfControllers
)

var controllerNames = [endOfControllers]string{"memory", "processes", "cpus", "cpu time", "kill"}

// String returns a lower-case name.
func (c Controller) String() string {
	if c < endOfControllers {
		return controllerNames[c]
	}
	return fmt.Sprintf("controller(%d)", uint8(c))
}

// Limits bound a group. A field that is 0 sets no limit; negative values are errors.
type Limits struct {
	Memory    int64   // bytes, swap included
	Processes int     // tasks: threads count
	CPUs      float64 // processors that may be busy at one time, at least 0.01
}

// Set is what the kernel reported back after the limits were set. A field is 0 if no limit was set.
type Set struct {
	Memory     int64  // bytes, rounded down to pages
	MemoryNote string // what a careful reader must know of the memory limit; mostly ""
	Processes  int
	CPUs       float64 // less than asked for if the caller's own group allows less
}

// Stats are the counters of a group. A figure that this host does not measure is -1, which is not the same as 0.
type Stats struct {
	OOMKills         int64 // processes that the kernel killed for want of memory
	ProcessLimitHits int64 // times that a task was refused
	CPU              time.Duration
	User, System     time.Duration
	PeakMemory       int64 // bytes
	PeakProcesses    int64 // tasks at one time
	Processes        int64 // tasks now
}

const (
	prefix  = "containment-" // of every directory that this package makes, and removes
	maxName = 100
)

// base returns the name of the directories of a group.
func base(name string) (string, error) {
	if name == "" || len(name) > maxName || strings.IndexFunc(name, foreign) >= 0 {
		return "", fmt.Errorf("%w: %q must be 1 to %d letters, digits, '-', '_' or '.'", ErrName, name, maxName)
	}
	return prefix + name, nil
}

func foreign(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
}

func (l Limits) check() error {
	if l.Memory < 0 || l.Processes < 0 || l.CPUs != l.CPUs || l.CPUs < 0 || l.CPUs > 0 && l.CPUs < 0.01 {
		return fmt.Errorf("cgroup: limits %+v must not be negative, and CPUs not below 0.01", l)
	}
	return nil
}
