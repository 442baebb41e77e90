// SPDX-License-Identifier: Apache-2.0

package bubblewrap

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// A mount point cannot be renamed, removed or replaced by anybody in its namespace. So a read-only bind protects a path, and
// nothing else does as long as a directory above it can be moved away with it: those are made mount points too, of
// themselves.

// kind says what is mounted on a path of the workspace.
type kind uint8

const (
	pinned   kind = iota // the path itself, so that it stays where it is
	writable             // a private copy of something declared
	readOnly             // the path itself, read-only
	declared             // something of the host, read-only
	hidden               // nothing that could be read
)

// rule is one mount below the workspace.
type rule struct {
	path   string // clean, slash-separated
	kind   kind
	dir    bool
	source string // of what is declared, or of its copy
}

// arrange returns what must be mounted for the rules to hold, in the order in which it must be done: what is above comes
// first. Of two rules for one path, the stricter one counts; what lies in a hidden path is hidden.
func arrange(rules []rule) []rule {
	strict := slices.Clone(rules)
	slices.SortStableFunc(strict, func(a, b rule) int {
		return cmp.Or(strings.Compare(a.path, b.path), cmp.Compare(b.kind, a.kind))
	})
	strict = slices.CompactFunc(strict, func(a, b rule) bool { return a.path == b.path })
	var list []rule
	for _, r := range strict {
		above := nearest(list, r.path)
		switch {
		case above != nil && above.kind == hidden:
			continue
		case above != nil && (above.kind == readOnly || above.kind == declared) && r.kind == readOnly:
			continue
		case above != nil && above.kind == readOnly && r.kind == writable:
			r.kind = declared // read-only holds for every mount below
		}
		list = append(list, pins(list, r)...)
		list = append(list, r)
	}
	return list
}

// pins returns the directories between the workspace, or what is mounted there, and the rule's path.
func pins(list []rule, r rule) []rule {
	var up []rule
	for dir := path.Dir(r.path); dir != "."; dir = path.Dir(dir) {
		if above := nearest(list, dir); above != nil && (above.path == dir || above.kind == readOnly || above.kind == declared) {
			break
		}
		up = append(up, rule{path: dir, kind: pinned, dir: true})
	}
	slices.Reverse(up)
	return up
}

// nearest returns the last mount in the list on a path or above it.
func nearest(list []rule, p string) *rule {
	for i, r := range slices.Backward(list) {
		if within(r.path, p) {
			return &list[i]
		}
	}
	return nil
}

// lastCopy returns the innermost private copy of something declared in which a path lies, if it does.
func lastCopy(list []rule, p string) *rule {
	for i, r := range slices.Backward(list) {
		if r.kind == writable && within(r.path, p) {
			return &list[i]
		}
	}
	return nil
}

// within reports whether p is dir or lies below it. Both are clean.
func within(dir, p string) bool {
	if dir == "." || dir == "/" {
		return true
	}
	rest, ok := strings.CutPrefix(p, dir)
	return ok && (rest == "" || rest[0] == '/')
}
