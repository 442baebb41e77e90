// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/hashicorp/go-multierror"

	"github.com/evoseal/containment/executor"
)

// ErrRequest: the request is incomplete or contradicts itself. Nothing was looked at.
var ErrRequest = errors.New("artifact: invalid request")

const (
	// maxEntries is the number of directory entries that are looked at in one extraction.
	maxEntries = 100_000
	// maxRefusals is the number of refusals that are listed one by one.
	maxRefusals = 1000
)

// Request says what to take, and how much of it at most.
type Request struct {
	// Root is an open directory: the workspace as the run saw it. Extract does not close it.
	Root *os.File
	// Alone says that nobody else is there who could change the tree: then a kernel without openat2 will do, as an older
	// gVisor is, and names are followed one by one.
	Alone bool
	// Patterns are doublestar patterns over paths below Root. One without any of `*?[{\` names one path, and is found
	// even where a directory has more entries than would be listed.
	Patterns []string
	// Dest is the directory that gets the files, created with mode 0700 if necessary. Files in it are replaced.
	// It must lie outside the workspace.
	Dest string
	// MaxBytes bounds all artifacts together, by apparent size, and MaxFiles their number. Both must be positive.
	MaxBytes int64
	MaxFiles int
	// ID is the run's id, a plain name. It marks files that are not complete yet, for RemoveTemps.
	ID string
	// Exclude are paths that are never taken, with everything below; ExcludeNames are base names, at any depth.
	Exclude, ExcludeNames []string
}

// check names every fault of the request, where the files are written (dest) and where they are read (root).
func (r *Request) check(root, dest bool) error {
	var all *multierror.Error
	fault := func(format string, args ...any) {
		all = multierror.Append(all, fmt.Errorf("%w: "+format, append([]any{ErrRequest}, args...)...))
	}
	if root && r.Root == nil {
		fault("Root must be an open directory")
	}
	if dest && (r.Dest == "" || strings.ContainsRune(r.Dest, 0)) {
		fault("Dest %q must name a directory", r.Dest)
	}
	if dest && (r.ID == "" || strings.ContainsAny(r.ID, "/*?[\\\x00")) {
		fault("ID %q must be the id of a run", r.ID)
	}
	if r.MaxBytes <= 0 || r.MaxFiles <= 0 {
		fault("MaxBytes %d and MaxFiles %d must be positive", r.MaxBytes, r.MaxFiles)
	}
	for _, p := range r.Patterns {
		if !local(p) || !doublestar.ValidatePattern(p) {
			fault("pattern %q must be a doublestar pattern below the workspace, without \"..\"", p)
		}
	}
	for _, p := range r.Exclude {
		if !local(p) {
			fault("Exclude %q must be a path below the workspace, without \"..\"", p)
		}
	}
	return all.ErrorOrNil()
}

// local reports whether a path or pattern stays below the workspace. A ".." that braces or escapes would produce is
// never joined to anything: patterns are compared with paths that exist.
func local(p string) bool {
	return p != "" && !strings.ContainsRune(p, 0) && filepath.IsLocal(p) && !slices.Contains(strings.Split(p, "/"), "..")
}

// selector is what a request says about paths.
type selector struct {
	literals []string // clean paths
	globs    []glob
	exclude  []string // clean paths
	names    []string
}

type glob struct {
	pattern string
	base    string // nothing outside this directory can match
	depth   int    // nothing with more components can match; 0 if any depth can
	matched bool
}

func (r *Request) selector() *selector {
	s := &selector{names: r.ExcludeNames}
	for _, p := range r.Patterns {
		if !strings.ContainsAny(p, `*?[{\`) {
			if p = path.Clean(p); !slices.Contains(s.literals, p) {
				s.literals = append(s.literals, p)
			}
			continue
		}
		for strings.HasPrefix(p, "./") {
			p = p[len("./"):]
		}
		g := glob{pattern: p, depth: components(p)}
		g.base, _ = doublestar.SplitPattern(p)
		g.base = path.Clean(g.base)
		if strings.Contains(p, "**") {
			g.depth = 0
		}
		s.globs = append(s.globs, g)
	}
	for _, p := range r.Exclude {
		s.exclude = append(s.exclude, path.Clean(p))
	}
	return s
}

// match reports whether a pattern selects the path, and remembers which patterns ever did.
func (s *selector) match(p string) (any bool) {
	for i := range s.globs {
		if ok, err := doublestar.Match(s.globs[i].pattern, p); err == nil && ok {
			s.globs[i].matched, any = true, true
		}
	}
	return any
}

// components counts the names in a path. A pattern without "**" cannot match a path with more of them than itself.
func components(p string) int { return strings.Count(p, "/") + 1 }

// enter reports whether a pattern may match something below the directory.
func (s *selector) enter(dir string) bool {
	return slices.ContainsFunc(s.globs, func(g glob) bool {
		return (within(g.base, dir) || within(dir, g.base)) && (g.depth == 0 || components(dir) < g.depth)
	})
}

// bases returns the directories where the search begins, none of them inside another: whatever else the workspace holds,
// and however much of it, is not even listed.
func (s *selector) bases() []string {
	var list []string
	for _, g := range s.globs {
		list = append(list, g.base)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	all := slices.Clone(list)
	return slices.DeleteFunc(list, func(p string) bool {
		return slices.ContainsFunc(all, func(o string) bool { return o != p && within(o, p) })
	})
}

// barred returns why a path must not come back, or "". Every component counts.
func (s *selector) barred(p string) string {
	for _, e := range s.exclude {
		if within(e, p) {
			return "hidden from the run; declare another path"
		}
	}
	for name := range strings.SplitSeq(p, "/") {
		if isGit(name) {
			return "git's own files never come back: hooks, filters and settings in them would run on the host"
		}
		if slices.Contains(s.names, name) {
			return "files named " + name + " are hidden from the run; declare another path"
		}
	}
	return ""
}

// within reports whether p is dir or lies below it.
func within(dir, p string) bool {
	if dir == "." {
		return true
	}
	rest, ok := strings.CutPrefix(p, dir)
	return ok && (rest == "" || rest[0] == '/')
}

// results collects what comes back, within bounds.
type results struct {
	artifacts []executor.Artifact
	refusals  []executor.Refusal
	more      int // refusals that are not listed
}

func (r *results) refuse(p, format string, args ...any) {
	if len(r.refusals) == maxRefusals {
		r.more++
		return
	}
	r.refusals = append(r.refusals, executor.Refusal{Path: p, Reason: fmt.Sprintf(format, args...)})
}

func (r *results) all() ([]executor.Artifact, []executor.Refusal) {
	if r.more > 0 {
		reason := fmt.Sprintf("and %d more refusals", r.more)
		return r.artifacts, append(r.refusals, executor.Refusal{Path: ".", Reason: reason})
	}
	return r.artifacts, r.refusals
}
