// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Caps on what a pattern may cost: matching nested alternatives is exponential in their number.
const (
	maxPattern      = 1024
	maxPatternBrace = 8
)

func (c *checker) workspace(dir string) {
	switch {
	case dir == "":
		c.fault("Workspace", "must name a directory; use an empty one if the command needs no files")
		return
	case hasNUL(dir):
		c.fault("Workspace", "must not contain NUL")
		return
	}
	switch fi, err := os.Stat(dir); {
	case err != nil:
		c.fault("Workspace", "%q must exist (%v)", dir, err)
	case !fi.IsDir():
		c.fault("Workspace", "%q must be a directory", dir)
	}
}

// overlay demands a directory of its own. A link is refused: whoever can turn it decides what is trusted.
func (c *checker) overlay(s Spec) {
	if s.Overlay == "" || !c.absolute("Overlay", s.Overlay) {
		return
	}
	dir := filepath.Clean(s.Overlay) // a slash at the end would follow the link
	switch fi, err := os.Lstat(dir); {
	case err != nil:
		c.fault("Overlay", "%q must exist (%v)", dir, err)
	case !fi.IsDir():
		c.fault("Overlay", "%q must be a directory, and no link to one", dir)
	case s.Workspace != "" && !hasNUL(s.Workspace) && overlap(s.Workspace, dir):
		c.fault("Overlay", "%q must neither lie in Workspace nor contain it", dir)
	case len(s.Artifacts) > 0 && s.ArtifactDir != "" && !hasNUL(s.ArtifactDir) && overlap(s.ArtifactDir, dir):
		c.fault("Overlay", "%q must neither lie in ArtifactDir nor contain it", dir)
	}
}

// hasDotDot reports whether a component of p is "..", for every separator that this system knows.
func hasDotDot(p string) bool {
	return slices.Contains(strings.Split(filepath.ToSlash(p), "/"), "..")
}

// inside demands a slash-separated path that stays below the workspace without any "..". It reports whether p is one.
func (c *checker) inside(field, p string, emptyOK bool) bool {
	switch {
	case p == "" && emptyOK:
	case p == "":
		c.fault(field, "must not be empty")
	case hasNUL(p):
		c.fault(field, "%q must not contain NUL", p)
	case hasDotDot(p):
		c.fault(field, "%q must not contain \"..\"", p)
	case !filepath.IsLocal(filepath.FromSlash(p)):
		c.fault(field, "%q must be a path relative to the workspace", p)
	default:
		return true
	}
	return false
}

func (c *checker) hidden(field, p string) {
	if c.inside(field, p, false) && path.Clean(p) == "." {
		c.fault(field, "%q must not be the workspace itself", p)
	}
}

func (c *checker) mounts(mounts []Mount, workspace string) {
	targets := map[string]int{}
	for i, m := range mounts {
		field, target := fmt.Sprintf("Mounts[%d]", i), m.Target
		ok := c.absolute(field+".Source", m.Source)
		if target == "" {
			target = m.Source // judged already: one mistake is one fault
		} else {
			ok = c.absolute(field+".Target", target)
		}
		if !ok {
			continue
		}
		if dir := resolve(m.Source); workspace != "" && (dir == resolve(workspace) || within(dir, resolve(workspace))) {
			c.fault(field+".Source", "%q must not contain Workspace: what is hidden in the copy would be visible there", m.Source)
		}
		target = path.Clean(filepath.ToSlash(target))
		if first, dup := targets[target]; dup {
			c.fault(field+".Target", "%q is the target of Mounts[%d] already", target, first)
			continue
		}
		targets[target] = i
	}
}

// absolute demands a path that names one place: absolute, no "..", not the root. It reports whether p is one.
func (c *checker) absolute(field, p string) bool {
	switch {
	case hasNUL(p):
		c.fault(field, "%q must not contain NUL", p)
	case !filepath.IsAbs(p) && !strings.HasPrefix(p, "/"):
		c.fault(field, "%q must be absolute", p)
	case hasDotDot(p):
		c.fault(field, "%q must not contain \"..\"", p)
	case path.Clean(filepath.ToSlash(p)) == "/": // also "//" and "/."
		c.fault(field, "%q must not be the root", p)
	default:
		return true
	}
	return false
}

func (c *checker) artifacts(s Spec) {
	for i, p := range s.Artifacts {
		c.pattern(fmt.Sprintf("Artifacts[%d]", i), p)
	}
	switch {
	case len(s.Artifacts) == 0:
		return
	case s.ArtifactDir == "":
		c.fault("ArtifactDir", "must be set if Artifacts are declared")
	case hasNUL(s.ArtifactDir):
		c.fault("ArtifactDir", "must not contain NUL")
	case s.Workspace == "" || hasNUL(s.Workspace): // a fault of its own, and nothing to compare with
	case overlap(s.Workspace, s.ArtifactDir):
		c.fault("ArtifactDir", "%q must neither lie in Workspace nor contain it", s.ArtifactDir)
	}
}

func (c *checker) pattern(field, p string) {
	switch {
	case p == "":
		c.fault(field, "must not be empty")
	case hasNUL(p):
		c.fault(field, "%q must not contain NUL", p)
	case len(p) > maxPattern || strings.Count(p, "{") > maxPatternBrace:
		c.fault(field, "must have at most %d bytes and %d alternatives in braces", maxPattern, maxPatternBrace)
	case strings.HasPrefix(p, "/") || filepath.IsAbs(p):
		c.fault(field, "%q must be relative to the workspace", p)
	case !doublestar.ValidatePattern(p):
		c.fault(field, "%q must be a doublestar pattern", p)
	case hasDotDot(p) || escapes(p):
		c.fault(field, "%q must not leave the workspace", p)
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
