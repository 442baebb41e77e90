// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"slices"
	"strings"
)

// gitPlace is a directory of a git directory, where a walk is. Of a git directory only that is watched which has
// effects: objects are named by their digest, logs are records, the index changes with every status.
type gitPlace struct {
	in      bool
	pointed bool   // the git directory is known by a pointer, not by its name: names in it are protected as elsewhere
	rel     string // "" is the git directory itself
	modules bool   // below modules: git directories of submodules, at any depth, because their names have slashes
	top     bool   // modules itself
	head    bool   // the directory holds HEAD
}

// isGitDir tells whether a directory is a git directory: by its name, or because a work tree says so.
func (t *Tree) isGitDir(path, name string) bool {
	return foldKey(name) == ".git" || slices.Contains(t.gitDirs, path)
}

// listed notes what the names in the directory tell about it.
func (g gitPlace) listed(entries []entry) gitPlace {
	g.head = slices.ContainsFunc(entries, func(e entry) bool { return e.name == "HEAD" && e.kind != kindDir })
	return g
}

// below is the place of a directory in this one.
func (g gitPlace) below(name string) gitPlace {
	child := gitPlace{in: true, pointed: g.pointed, modules: g.modules, rel: join(g.rel, name)}
	switch {
	case child.rel == "modules" && !g.top:
		child.rel, child.modules, child.top = "", true, true
	case g.modules && g.isPartOfName(name):
		child.rel = ""
	}
	return child
}

// isPartOfName tells whether a directory below modules is a part of a submodule's name, or its git directory, though it
// has the name of a part of a git directory: as long as there is no HEAD beside it, it is no such part.
func (g gitPlace) isPartOfName(name string) bool {
	switch {
	case g.rel != "":
		return false // in a part of a git directory
	case g.top:
		return true
	case name == "objects" || name == "logs" || name == "worktrees" || name == "lfs":
		return !g.head
	}
	return !isGitPart(name)
}

// isGitPart tells whether a name directly below a git directory is one of those that are looked into.
func isGitPart(name string) bool {
	switch name {
	case "hooks", "info", "refs", "reftable", "sequencer", "objects", "worktrees", "logs":
		return true
	}
	return strings.HasPrefix(name, "rebase-")
}

// watched tells whether an entry is recorded, and whether to look into it if it is a directory. Directories that hold
// what is watched are recorded themselves, so that something else in their place is found.
func (g gitPlace) watched(name string, k kind, full bool) (record, descend bool) {
	if k != kindFile && k != kindDir {
		return true, false // git makes no links, and what one leads to is not in the tree
	}
	rel := join(g.rel, name)
	if g.modules && g.rel == "" {
		unknown := g.top || !g.head // no git directory: nothing in it comes and goes
		if k == kindFile && unknown || k == kindDir && g.isPartOfName(name) {
			return full || unknown, true
		}
	}
	if full && !(volatile(rel) && !g.pointed) {
		return true, true
	}
	record, descend = plain(rel)
	return record, descend || g.pointed
}

// plain is what is watched of every git directory.
func plain(rel string) (record, descend bool) {
	parts := strings.Split(rel, "/")
	switch parts[0] {
	case "config", "config.worktree", "HEAD", "packed-refs", "commondir", "gitdir", "shallow":
		return true, true
	case "modules":
		return true, true
	case "objects":
		switch rel {
		case "objects", "objects/info":
			return true, true
		case "objects/info/alternates", "objects/info/http-alternates":
			return true, false
		}
		return false, false
	case "worktrees":
		if len(parts) < 3 {
			return true, true
		}
		return len(parts) == 3 && slices.Contains([]string{"gitdir", "commondir", "config.worktree"}, parts[2]), false
	case "logs":
		return false, false
	}
	part := isGitPart(parts[0])
	return part, part
}

// volatile tells whether git itself changes the entry with every other command.
func volatile(rel string) bool {
	parts := strings.Split(rel, "/")
	if parts[0] == "worktrees" && len(parts) > 2 {
		parts = parts[2:]
	}
	switch parts[0] {
	case "index", "index.lock":
		return len(parts) == 1
	case "logs":
		return true
	case "objects":
		return len(parts) > 1 && (len(parts[1]) == 2 || parts[1] == "pack")
	}
	return false
}
