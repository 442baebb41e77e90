// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evoseal/containment/executor"
)

// Toolchain is what a run needs of the host beside its workspace: plain data, which can be printed, compared and made
// by hand for a language that this package does not know. The zero value adds nothing.
type Toolchain struct {
	Name    string // such as "go"; for messages
	Version string // as the program says it, such as "go1.26.5"; may be empty
	Program string // absolute path of the program on the host and inside; may be empty

	Mounts []executor.Mount  // those of Go, Python and Node are read-only, with targets equal to their sources
	Env    map[string]string // without PATH
	Path   []string          // absolute directories that are put in front of PATH
	Seed   string            // directory of the Go build cache seed, which Apply checks; empty if there is none
}

// Apply adds mounts, environment and search path to the specification. What the specification sets already and sets
// otherwise is a conflict, and so is a mount that lies in the workspace, where a variant could have written it. All
// conflicts are in the error, a [*ConflictError], and the specification is then unchanged. If the toolchain has a seed
// that cannot be trusted any more, the error is a [*SeedError].
//
// Apply copies what it changes: maps and slices that the specification shares with others stay as they are. Applying
// the same toolchain twice has no further effect.
func (t *Toolchain) Apply(spec *executor.Spec) error {
	var c conflicts
	env := c.env(t, spec)
	mounts := c.mounts(t, spec)
	c.workspace(t, spec.Workspace)
	if len(c.list) > 0 {
		return &ConflictError{Toolchain: t.Name, Conflicts: c.list}
	}
	if t.Seed != "" {
		if err := checkSeed(t.Seed); err != nil {
			return err
		}
	}
	spec.Env, spec.Mounts = env, mounts
	return nil
}

// conflicts collects.
type conflicts struct{ list []Conflict }

func (c *conflicts) add(field, format string, args ...any) {
	c.list = append(c.list, Conflict{Field: field, Rule: fmt.Sprintf(format, args...)})
}

// env returns the environment with that of the toolchain added.
func (c *conflicts) env(t *Toolchain, spec *executor.Spec) map[string]string {
	env := maps.Clone(spec.Env)
	if env == nil {
		env = map[string]string{}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		field, want := fmt.Sprintf("Env[%q]", name), t.Env[name]
		have, set := env[name]
		switch {
		case name == "PATH":
			c.add(field, "must not be in Toolchain.Env; use Toolchain.Path")
		case set && have != want:
			c.add(field, "is %q already, and must be %q; leave it out of the specification", have, want)
		default:
			env[name] = want
		}
	}
	if search := c.path(t, env); search != "" {
		env["PATH"] = search
	}
	return env
}

// path returns the new PATH, or "" if nothing is to be added.
func (c *conflicts) path(t *Toolchain, env map[string]string) string {
	for i, dir := range t.Path {
		if !isAbs(dir) || strings.ContainsRune(dir, ':') {
			c.add(fmt.Sprintf("Path[%d]", i), "%q must be absolute and must not contain ':'", dir)
		}
	}
	if len(t.Path) == 0 {
		return ""
	}
	have, set := env["PATH"]
	if !set {
		have = executor.DefaultPath
	}
	ours := strings.Join(t.Path, ":")
	switch {
	case have == "":
		return ours
	case strings.HasPrefix(have+":", ours+":"):
		return have
	}
	// An element that is further behind stays there too: that is harmless, and the order of the rest is the caller's.
	return ours + ":" + have
}

// mounts returns the mounts with those of the toolchain added.
func (c *conflicts) mounts(t *Toolchain, spec *executor.Spec) []executor.Mount {
	mounts := slices.Clone(spec.Mounts)
	for i, m := range t.Mounts {
		m = normal(m)
		if !isAbs(m.Source) || !isAbs(m.Target) {
			c.add(fmt.Sprintf("Mounts[%d]", i), "%q on %q must be absolute", m.Source, m.Target)
			continue
		}
		j := slices.IndexFunc(mounts, func(o executor.Mount) bool { return normal(o).Target == m.Target })
		switch {
		case j < 0:
			mounts = append(mounts, t.Mounts[i])
		case normal(mounts[j]) != m:
			c.add(fmt.Sprintf("Mounts[%q]", m.Target), "is %s already, and must be %s; leave it out of the specification",
				describe(mounts[j]), describe(m))
		}
	}
	return mounts
}

// workspace refuses what a variant could have written, and what would show it the original of its copy.
func (c *conflicts) workspace(t *Toolchain, workspace string) {
	if workspace == "" {
		return // Spec.Validate says so
	}
	workspace = resolve(workspace)
	for _, m := range t.Mounts {
		if source := resolve(m.Source); within(workspace, source) || within(source, workspace) {
			c.add(fmt.Sprintf("Mounts[%q]", normal(m).Target), "must neither lie in the workspace %s nor contain it", workspace)
		}
	}
}

// normal makes mounts comparable.
func normal(m executor.Mount) executor.Mount {
	if m.Target == "" {
		m.Target = m.Source
	}
	m.Source, m.Target = path.Clean(m.Source), path.Clean(m.Target)
	return m
}

func describe(m executor.Mount) string {
	text := normal(m).Source
	if m.CopyOnWrite {
		text += " with copy-on-write"
	}
	return text
}

// isAbs accepts paths of the run, which is a Linux system wherever this code runs, and of the host.
func isAbs(p string) bool { return path.IsAbs(p) || filepath.IsAbs(p) }

func within(dir, p string) bool {
	rel, err := filepath.Rel(dir, p)
	return err == nil && filepath.IsLocal(rel)
}

// resolve follows links as far as they exist.
func resolve(p string) string {
	if abs, err := filepath.Abs(p); err == nil {
		p = abs
	}
	for dir, rest := p, ""; ; {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return p
		}
		dir, rest = parent, filepath.Join(filepath.Base(dir), rest)
	}
}
