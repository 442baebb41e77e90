// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"slices"
	"strings"
)

// gitPlace is where in a git directory a walk is. Of a git directory only that is watched which has effects: objects
// are named by their digest, logs are records, the index changes with every status.
type gitPlace struct {
	in  bool
	rel string // "" is the git directory itself
}

func (g gitPlace) below(name string) gitPlace {
	if !g.in {
		return g
	}
	return gitPlace{true, join(g.rel, name)}
}

// isGitDir tells whether a directory is a git directory: by its name, or because the work tree says so.
func (t *Tree) isGitDir(path, name string) bool {
	return foldKey(name) == ".git" || slices.Contains(t.gitDirs, path)
}

// watched tells whether an entry is recorded, and whether to look into it if it is a directory.
func (g gitPlace) watched() (record, descend bool) {
	parts := strings.Split(g.rel, "/")
	switch parts[0] {
	case "config", "config.worktree", "HEAD", "packed-refs", "commondir", "gitdir":
		return len(parts) == 1, false
	case "hooks", "info", "refs":
		return true, true
	case "objects":
		return g.rel == "objects/info/alternates", g.rel == "objects" || g.rel == "objects/info"
	case "modules":
		return watchedModule(parts[1:])
	case "worktrees":
		file := len(parts) == 3 && slices.Contains([]string{"gitdir", "commondir", "config.worktree"}, parts[2])
		return file, len(parts) < 3
	}
	return false, false
}

// watchedModule judges what lies below modules. Names of submodules have slashes, and submodules have submodules, so
// the depth at which a git directory starts is not known.
func watchedModule(parts []string) (record, descend bool) {
	if len(parts) == 0 {
		return false, true
	}
	if slices.Contains(parts[1:], "hooks") || slices.Contains(parts[1:], "info") {
		return !slices.Contains(parts[1:], "objects"), true
	}
	last := parts[len(parts)-1]
	if last == "objects" || last == "logs" {
		return false, len(parts) == 1 // a submodule of that name
	}
	return len(parts) > 1 && (last == "config" || last == "config.worktree"), true
}
