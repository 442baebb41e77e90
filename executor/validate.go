// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxLabel = 128

// Validate returns nil or a [*SpecError] that names every fault. It starts nothing and changes nothing; it looks at the
// file system only to see whether Workspace and Overlay are directories, and how they and ArtifactDir lie to each other.
func (s Spec) Validate() error {
	var c checker
	c.args(s.Args)
	c.workspace(s.Workspace)
	c.overlay(s)
	c.env(s.Env)
	c.inside("Dir", s.Dir, true)
	for i, p := range s.ReadOnly {
		c.inside(fmt.Sprintf("ReadOnly[%d]", i), p, false)
	}
	for i, p := range s.Hidden {
		c.hidden(fmt.Sprintf("Hidden[%d]", i), p)
	}
	c.mounts(s.Mounts, s.Workspace)
	c.artifacts(s)
	c.limits(s.Limits)
	if unknown := s.Require &^ AllCapabilities; unknown != 0 {
		c.fault("Require", "%v must be defined by this package", unknown)
	}
	c.label(s.Label)
	if len(c.faults) == 0 {
		return nil
	}
	return &SpecError{Faults: c.faults}
}

type checker struct{ faults []Fault }

// fault records one mistake. The field is the path of what is wrong and nothing else, so that programs can compare it;
// the offending value belongs in the rule.
func (c *checker) fault(field, rule string, args ...any) {
	c.faults = append(c.faults, Fault{Field: field, Rule: fmt.Sprintf(rule, args...)})
}

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }

func (c *checker) args(args []string) {
	if len(args) == 0 {
		c.fault("Args", "must name a program")
		return
	}
	if args[0] == "" {
		c.fault("Args[0]", "must not be empty")
	}
	for i, a := range args {
		if hasNUL(a) {
			c.fault(fmt.Sprintf("Args[%d]", i), "must not contain NUL")
		}
	}
}

func (c *checker) env(env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		field := fmt.Sprintf("Env[%q]", name)
		if name == "" {
			c.fault(field, "a name must not be empty")
		}
		if strings.Contains(name, "=") {
			c.fault(field, "a name must not contain '='")
		}
		if hasNUL(name) {
			c.fault(field, "a name must not contain NUL")
		}
		if hasNUL(env[name]) {
			c.fault(field, "a value must not contain NUL")
		}
	}
}

func (c *checker) limits(l Limits) {
	checkLimit(c, "Wall", l.Wall, minWall)
	checkLimit(c, "CPU", l.CPU, minCPU)
	checkLimit(c, "Memory", l.Memory, minMemory)
	checkLimit(c, "Disk", l.Disk, minDisk)
	checkLimit(c, "FileSize", l.FileSize, minFileSize)
	checkLimit(c, "Output", l.Output, minOutput)
	checkLimit(c, "ArtifactBytes", l.ArtifactBytes, 1)
	checkLimit(c, "Processes", l.Processes, minProcesses)
	checkLimit(c, "OpenFiles", l.OpenFiles, minOpenFiles)
	checkLimit(c, "ArtifactFiles", l.ArtifactFiles, 1)
	switch {
	case math.IsNaN(l.CPUs) || math.IsInf(l.CPUs, 0):
		c.fault("Limits.CPUs", "%v must be a finite number", l.CPUs)
	case l.CPUs > maxCPUs:
		c.fault("Limits.CPUs", "%v must be at most %d", l.CPUs, maxCPUs)
	default:
		checkLimit(c, "CPUs", l.CPUs, minCPUs)
	}
}

func checkLimit[T int | float64 | ~int64](c *checker, name string, v, floor T) {
	switch {
	case v < 0:
		c.fault("Limits."+name, "%v must not be negative; 0 means the default", v)
	case v > 0 && v < floor:
		c.fault("Limits."+name, "%v must be at least %v, or a run cannot start", v, floor)
	}
}

func (c *checker) label(label string) {
	bad := func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }
	if len(label) > maxLabel || strings.ContainsFunc(label, bad) {
		c.fault("Label", "must be at most %d printable bytes", maxLabel)
	}
}
