// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"slices"
	"strings"

	"github.com/evoseal/containment/rollback/internal/object"
	"github.com/evoseal/containment/rollback/internal/scan"
)

// foreignAt returns what stands at a path and is not captured.
func (d *planner) foreignAt(path string) (scan.Foreign, bool) {
	i, ok := slices.BinarySearchFunc(d.foreign, path, comparePath)
	if !ok {
		return scan.Foreign{}, false
	}
	return d.foreign[i], true
}

// foreignBelow returns what is not captured in a directory and below.
func (d *planner) foreignBelow(dir string) []scan.Foreign {
	from, _ := slices.BinarySearchFunc(d.foreign, dir+"/", comparePath)
	to := from
	for to < len(d.foreign) && strings.HasPrefix(d.foreign[to].Path, dir+"/") {
		to++
	}
	return d.foreign[from:to]
}

func comparePath(f scan.Foreign, path string) int { return strings.Compare(f.Path, path) }

// displace decides on a foreign entry that is in the way: at a name that the checkpoint needs, or in a directory that
// has to go.
func (d *planner) displace(f scan.Foreign, needed bool) {
	d.handled[f.Path] = true
	movable := d.policy == ForeignQuarantine && f.Why != scan.Mount
	switch {
	case movable:
		d.leave(f.Path, whyOf(f))
	case needed:
		d.blocked = append(d.blocked, Foreign{Path: f.Path, Why: whyOf(f)})
	default:
		d.plan.kept = append(d.plan.kept, Foreign{Path: f.Path, Why: whyOf(f)})
		for dir := parentOf(f.Path); dir != "."; dir = parentOf(dir) {
			d.stay[dir] = true
		}
	}
}

// leave plans to move a foreign entry, whole, into quarantine.
func (d *planner) leave(path, why string) {
	d.touching[parentOf(path)] = true
	d.plan.touched[parentOf(path)] = true
	d.plan.leave = append(d.plan.leave, Quarantined{Path: path, Why: why})
	d.plan.remove = append(d.plan.remove, operation{do: doTake, path: path, foreign: why})
}

// otherStaging is why a name at the top that begins like staging is foreign.
const otherStaging = "staging of another store or of another tree"

// stagings decides on staging that is not ours. Whoever writes to a tree can make such names, and must not be able to
// block its rollback by them. Should one be real, nothing is lost: its store finishes by its own journal.
func (d *planner) stagings() {
	for _, name := range d.staging {
		if d.policy == ForeignQuarantine {
			d.leave(name, otherStaging)
		} else {
			d.plan.kept = append(d.plan.kept, Foreign{Path: name, Why: otherStaging})
		}
	}
}

// strangers decides on foreign entries that are in nobody's way. What a checkpoint leaves out by rule is untouched.
// What it would hold, had it been possible to capture it, has to go like any other name that it does not have.
func (d *planner) strangers() {
	for _, f := range d.foreign {
		if d.handled[f.Path] {
			continue
		}
		switch f.Why {
		case scan.Git, scan.Excluded, scan.Mount:
		case scan.Special:
			switch {
			case d.known[f.Path]:
			case d.policy == ForeignQuarantine:
				d.leave(f.Path, whyOf(f))
			default:
				d.plan.kept = append(d.plan.kept, Foreign{Path: f.Path, Why: whyOf(f)})
			}
		default:
			d.displace(f, true)
		}
	}
}

func whyOf(f scan.Foreign) string {
	if f.Detail == "" {
		return f.Why.String()
	}
	return f.Why.String() + ": " + f.Detail
}

// groups gives names of one file one inode again. If the first name of the group keeps its file, the others become
// names of that one. Otherwise all of them are planned, since the group of each differs, and they become names of one
// new file.
func (d *planner) groups(have *scan.Node) {
	for _, group := range d.inPlace {
		op := group[0]
		if op.was.Stat.Nlink == uint32(len(group)) { // it has no other name, in or outside the tree
			for _, op := range group {
				d.attributes(op)
			}
			continue
		}
		for _, op := range group {
			op.do = doPut
			d.put(op)
		}
	}
	for group, members := range d.regroup {
		if slices.ContainsFunc(members, func(i int) bool { return d.plan.put[i].path == group }) {
			continue
		}
		first := lookup(have, group)
		if first == nil || first.Kind != object.File {
			continue // a group without its first name; the members still become one
		}
		for _, i := range members {
			if d.plan.put[i].want.Data == first.Data {
				d.plan.put[i].partner, d.plan.put[i].partnerIno = group, first.Stat.Ino
			}
		}
	}
}

// parents plans what the directories need in which names come and go: all rights of the owner meanwhile, and their own
// attributes again at the end.
func (d *planner) parents(have *scan.Node, root *object.Entry) {
	set := map[string]bool{}
	for i := range d.plan.set {
		set[d.plan.set[i].path] = true
	}
	if len(d.plan.remove)+len(d.plan.make)+len(d.plan.put)+len(d.plan.set) > 0 && !set["."] {
		d.attributes(operation{do: doAttributes, path: ".", want: *root, was: have}) // staging changes its time
		set["."] = true
	}
	for path := range d.touching {
		p, both := d.pairs[path]
		if both && !set[path] {
			d.attributes(operation{do: doAttributes, path: path, want: p.want, was: p.have})
		}
		dir := lookup(have, path)
		if dir != nil && dir.Kind == object.Dir && dir.Mode&0o700 != 0o700 {
			d.plan.open = append(d.plan.open, opened{Path: path, Mode: dir.Mode, Back: !both})
		}
	}
	slices.SortFunc(d.plan.open, func(a, b opened) int { return strings.Compare(a.Path, b.Path) })
}
