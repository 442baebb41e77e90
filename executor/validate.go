// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// Caps on what a pattern may cost: matching nested alternatives is exponential in their number.
const (
	maxPattern      = 1024
	maxPatternBrace = 8
	maxLabel        = 128
)

// Validate returns nil or a [*SpecError] that names every fault. It starts nothing and changes nothing; it looks at the
// file system only to see whether Workspace is a directory and how it lies to ArtifactDir.
func (s Spec) Validate() error {
	var c checker
	c.args(s.Args)
	c.workspace(s.Workspace)
	c.env(s.Env)
	c.inside("Dir", s.Dir, true)
	for i, p := range s.ReadOnly {
		c.inside(fmt.Sprintf("ReadOnly[%d]", i), p, false)
	}
	for i, p := range s.Hidden {
		c.inside(fmt.Sprintf("Hidden[%d]", i), p, false)
		if filepath.Clean(p) == "." {
			c.fault("Hidden[%d] %q: must not be the workspace itself", i, p)
		}
	}
	c.mounts(s.Mounts)
	c.artifacts(s)
	c.limits(s.Limits)
	c.label(s.Label)
	if unknown := s.Require &^ AllCapabilities; unknown != 0 {
		c.fault("Require %v: must hold only defined capabilities", unknown)
	}
	if len(c.faults) == 0 {
		return nil
	}
	return &SpecError{Faults: c.faults}
}

type checker struct{ faults []Fault }

// fault records "field: rule"; the first ": " separates the two.
func (c *checker) fault(format string, args ...any) {
	field, rule, _ := strings.Cut(fmt.Sprintf(format, args...), ": ")
	c.faults = append(c.faults, Fault{Field: field, Rule: rule})
}

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }

func (c *checker) args(args []string) {
	if len(args) == 0 {
		c.fault("Args: must name a program")
		return
	}
	if args[0] == "" {
		c.fault("Args[0]: must not be empty")
	}
	for i, a := range args {
		if hasNUL(a) {
			c.fault("Args[%d]: must not contain NUL", i)
		}
	}
}

func (c *checker) workspace(dir string) {
	if dir == "" {
		c.fault("Workspace: must name a directory; use an empty one if the command needs no files")
		return
	}
	if hasNUL(dir) {
		c.fault("Workspace: must not contain NUL")
		return
	}
	switch fi, err := os.Stat(dir); {
	case err != nil:
		c.fault("Workspace %q: must exist (%v)", dir, err)
	case !fi.IsDir():
		c.fault("Workspace %q: must be a directory", dir)
	}
}

func (c *checker) env(env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		switch {
		case name == "":
			c.fault("Env[\"\"]: a name must not be empty")
		case strings.Contains(name, "="):
			c.fault("Env[%q]: a name must not contain '='", name)
		case hasNUL(name):
			c.fault("Env[%q]: a name must not contain NUL", name)
		}
		if hasNUL(env[name]) {
			c.fault("Env[%q]: a value must not contain NUL", name)
		}
	}
}

// inside demands a slash-separated path that stays below the workspace without any "..".
func (c *checker) inside(field, p string, emptyOK bool) {
	switch {
	case p == "" && emptyOK:
	case p == "":
		c.fault("%s: must not be empty", field)
	case hasNUL(p):
		c.fault("%s %q: must not contain NUL", field, p)
	case slices.Contains(strings.Split(p, "/"), ".."):
		c.fault("%s %q: must not contain \"..\"", field, p)
	case !filepath.IsLocal(filepath.FromSlash(p)):
		c.fault("%s %q: must be a path relative to the workspace", field, p)
	}
}

func (c *checker) mounts(mounts []Mount) {
	targets := map[string]int{}
	for i, m := range mounts {
		target := m.Target
		if target == "" {
			target = m.Source
		}
		c.absolute(fmt.Sprintf("Mounts[%d].Source", i), m.Source)
		c.absolute(fmt.Sprintf("Mounts[%d].Target", i), target)
		if first, dup := targets[filepath.Clean(target)]; dup {
			c.fault("Mounts[%d].Target %q: is the target of Mounts[%d] already", i, target, first)
		}
		targets[filepath.Clean(target)] = i
	}
}

// absolute demands a path that names one place: absolute, no "..", not the root.
func (c *checker) absolute(field, p string) {
	switch {
	case hasNUL(p):
		c.fault("%s %q: must not contain NUL", field, p)
	case !filepath.IsAbs(p) && !strings.HasPrefix(p, "/"):
		c.fault("%s %q: must be absolute", field, p)
	case slices.Contains(strings.Split(filepath.ToSlash(p), "/"), ".."):
		c.fault("%s %q: must not contain \"..\"", field, p)
	case strings.Trim(p, "/") == "":
		c.fault("%s %q: must not be the root", field, p)
	}
}

func (c *checker) artifacts(s Spec) {
	for i, p := range s.Artifacts {
		c.pattern(i, p)
	}
	switch {
	case len(s.Artifacts) == 0:
		return
	case s.ArtifactDir == "":
		c.fault("ArtifactDir: must be set if Artifacts are declared")
	case hasNUL(s.ArtifactDir):
		c.fault("ArtifactDir: must not contain NUL")
	case overlap(s.Workspace, s.ArtifactDir):
		c.fault("ArtifactDir %q: must neither lie in Workspace nor contain it", s.ArtifactDir)
	}
}

func (c *checker) pattern(i int, p string) {
	words := strings.FieldsFunc(p, func(r rune) bool { return strings.ContainsRune(`/{},\`, r) })
	switch {
	case p == "":
		c.fault("Artifacts[%d]: must not be empty", i)
	case hasNUL(p):
		c.fault("Artifacts[%d] %q: must not contain NUL", i, p)
	case len(p) > maxPattern || strings.Count(p, "{") > maxPatternBrace:
		c.fault("Artifacts[%d]: must have at most %d bytes and %d alternatives in braces", i, maxPattern, maxPatternBrace)
	case strings.HasPrefix(p, "/") || filepath.IsAbs(p):
		c.fault("Artifacts[%d] %q: must be relative to the workspace", i, p)
	case slices.Contains(words, ".."):
		c.fault("Artifacts[%d] %q: must not leave the workspace by \"..\"", i, p)
	case !doublestar.ValidatePattern(p):
		c.fault("Artifacts[%d] %q: must be a doublestar pattern", i, p)
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
	if math.IsNaN(l.CPUs) || math.IsInf(l.CPUs, 0) {
		c.fault("Limits.CPUs %v: must be a finite number", l.CPUs)
		return
	}
	checkLimit(c, "CPUs", l.CPUs, minCPUs)
}

func checkLimit[T int | float64 | ~int64](c *checker, name string, v, floor T) {
	switch {
	case v < 0:
		c.fault("Limits.%s %v: must not be negative", name, v)
	case v > 0 && v < floor:
		c.fault("Limits.%s %v: must be at least %v, or a run cannot start", name, v, floor)
	}
}

func (c *checker) label(label string) {
	bad := func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }
	if len(label) > maxLabel || strings.ContainsFunc(label, bad) {
		c.fault("Label: must be at most %d printable bytes", maxLabel)
	}
}

// overlap reports whether one directory lies in the other or both are the same, links resolved as far as they exist.
func overlap(a, b string) bool {
	a, b = resolve(a), resolve(b)
	return a == b || within(a, b) || within(b, a)
}

func within(dir, p string) bool {
	rel, err := filepath.Rel(dir, p)
	return err == nil && filepath.IsLocal(rel)
}

func resolve(p string) string {
	abs, err := filepath.Abs(p)
	if err != nil {
		return filepath.Clean(p)
	}
	for dir, rest := abs, ""; ; {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return abs
		}
		dir, rest = parent, filepath.Join(filepath.Base(dir), rest)
	}
}
