// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/evoseal/containment/rollback/internal/object"
	"github.com/evoseal/containment/rollback/internal/scan"
)

// action is one thing that a restore does to a name.
type action uint8

const (
	doTake       action = iota + 1 // move what stands there into staging; no known directory
	doRemoveDir                    // remove a directory whose known entries are gone; never what is in it
	doMakeDir                      // make a directory, private until it gets its attributes
	doPut                          // exchange what stands there for what was staged
	doAttributes                   // give what stands there its attributes, in place
)

// operation is idempotent: whether it is done already is decided by what stands at the name.
type operation struct {
	do         action
	path       string
	want       object.Entry // put, make, attributes
	was        *scan.Node   // what the scan found; nil: nothing that it captured
	foreign    string       // take: why it is in no checkpoint; empty: it is, or it appeared
	slot       int          // put, take: number of its place in staging
	partner    string       // put: the name in the tree whose file gets this name too; empty: see groups
	partnerIno uint64
	like       *scan.Node // what lends its owner where owners are not captured
}

// plan is what makes one tree of another, in the order in which it is done: open, remove, make, put, attributes.
type plan struct {
	changes  []Change
	kept     []Foreign     // what no checkpoint holds and stays
	stuck    []string      // directories that stay because of it
	leave    []Quarantined // foreign entries that have to go; Where is empty
	open     []opened
	remove   []operation // deepest first
	make     []operation // top first
	put      []operation
	set      []operation     // attributes, deepest first; the root comes last
	touched  map[string]bool // directories to read again afterwards
	notEmpty bool
}

// opened is a directory that gets all rights of its owner for as long as the restore works in it.
type opened struct {
	Path string
	Mode uint32 // before
	Back bool   // it is in no checkpoint: the mode is put back at the end
}

// done reports whether there is nothing to do, or nothing that can be done.
func (p *plan) done() bool { return !p.notEmpty }

// finish brings the operations into their order.
func (p *plan) finish() {
	slices.SortFunc(p.changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortFunc(p.kept, func(a, b Foreign) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortFunc(p.leave, func(a, b Quarantined) int { return cmp.Compare(a.Path, b.Path) })
	p.kept = slices.Compact(p.kept)
	slices.SortStableFunc(p.set, func(a, b operation) int { return cmp.Compare(depth(b.path), depth(a.path)) })
	for path := range maps.Clone(p.touched) {
		for ; path != "." && !p.touched[parentOf(path)]; path = parentOf(path) {
			p.touched[parentOf(path)] = true
		}
	}
	p.notEmpty = len(p.remove)+len(p.make)+len(p.put)+len(p.set) > 0
}

// depth of a path below the root, which has 0.
func depth(path string) int {
	if path == "." {
		return 0
	}
	return 1 + strings.Count(path, "/")
}

// join makes the path of an entry. The root is ".".
func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// parentOf returns the directory that a path is in.
func parentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return "."
}

// lookup finds a path below a node, or nil.
func lookup(root *scan.Node, path string) *scan.Node {
	if path == "." {
		return root
	}
	for name := range strings.SplitSeq(path, "/") {
		if root = root.Child(name); root == nil {
			return nil
		}
	}
	return root
}

// paths lists what a plan changes.
func (p *plan) paths() []string {
	var all []string
	for _, list := range [][]operation{p.remove, p.make, p.put, p.set} {
		for i := range list {
			all = append(all, list[i].path)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// treeReader remembers directory objects, for callers that come back to them.
type treeReader struct {
	read func(object.Key) ([]object.Entry, error)
	seen map[object.Key][]object.Entry
}

func (t *treeReader) get(k object.Key) ([]object.Entry, error) {
	if entries, ok := t.seen[k]; ok {
		return entries, nil
	}
	entries, err := t.read(k)
	if err != nil {
		return nil, err
	}
	if t.seen == nil {
		t.seen = map[object.Key][]object.Entry{}
	}
	t.seen[k] = entries
	return entries, nil
}

// find returns what a checkpoint has at a path below its root. An object that cannot be read has nothing.
func (t *treeReader) find(root object.Entry, path string) (object.Entry, bool) {
	at := root
	for name := range strings.SplitSeq(path, "/") {
		if at.Kind != object.Dir {
			return at, false
		}
		entries, err := t.get(at.Data)
		if err != nil {
			return at, false
		}
		i, ok := slices.BinarySearchFunc(entries, name, func(e object.Entry, name string) int {
			return strings.Compare(e.Name, name)
		})
		if !ok {
			return at, false
		}
		at = entries[i]
	}
	return at, true
}
