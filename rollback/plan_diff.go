// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"fmt"
	"slices"

	"github.com/evoseal/containment/rollback/internal/object"
	"github.com/evoseal/containment/rollback/internal/scan"
)

// planner compares a tree with a checkpoint. It reads directory objects where the two differ and nothing else, and
// writes nothing.
type planner struct {
	tree    func(object.Key) ([]object.Entry, error)
	foreign []scan.Foreign  // sorted by path
	staging []string        // names at the top that are staging of somebody else, or look so
	known   map[string]bool // special files that the checkpoint lists as skipped
	policy  ForeignPolicy
	mtime   MTimePolicy

	plan     *plan
	pairs    map[string]pair        // directories that both have and that differ
	touching map[string]bool        // directories that lose or gain names
	inPlace  map[string][]operation // attributes of files with several names, by the group they are in now
	regroup  map[string][]int       // index into plan.put of files with several names, by the group they get
	handled  map[string]bool        // foreign entries that are decided on
	stay     map[string]bool        // directories with a foreign entry somewhere below that stays
	blocked  []Foreign
}

type pair struct {
	have *scan.Node
	want object.Entry
}

// diff plans the way from what was scanned to the root of a checkpoint. What stands in the way and may not be moved is
// in one error that matches ErrBlocked.
func (d *planner) diff(have *scan.Node, want object.Entry) (*plan, error) {
	d.plan = &plan{touched: map[string]bool{}}
	d.pairs, d.touching = map[string]pair{}, map[string]bool{}
	d.inPlace, d.regroup = map[string][]operation{}, map[string][]int{}
	d.handled, d.stay = map[string]bool{}, map[string]bool{}
	if err := d.dir(".", have, &want); err != nil {
		return nil, err
	}
	d.strangers()
	d.stagings()
	if len(d.blocked) > 0 {
		return nil, blockedError(d.blocked)
	}
	d.groups(have)
	d.parents(have, &want)
	d.plan.finish()
	return d.plan, nil
}

func blockedError(list []Foreign) error {
	paths := make([]string, len(list))
	for i, f := range list {
		paths[i] = f.Path
	}
	return fmt.Errorf("rollback: %w: %s (%s); move it away, or use ForeignQuarantine where it is no mount",
		ErrBlocked, quoted(paths), list[0].Why)
}

// dir compares a directory that both have.
func (d *planner) dir(path string, have *scan.Node, want *object.Entry) error {
	if have.Data != want.Data {
		entries, err := d.tree(want.Data)
		if err != nil {
			return err
		}
		d.plan.touched[path], d.pairs[path] = true, pair{have, *want}
		if err := d.entries(path, have, entries); err != nil {
			return err
		}
	}
	if !d.sameAttributes(&have.Entry, want) {
		d.change(path, Attributes)
		d.plan.touched[path] = true
		d.attributes(operation{do: doAttributes, path: path, want: *want, was: have})
	}
	return nil
}

// entries walks two sorted lists side by side.
func (d *planner) entries(path string, have *scan.Node, want []object.Entry) error {
	i := 0
	for j := range want {
		e := &want[j]
		for ; i < len(have.Children) && have.Children[i].Name < e.Name; i++ {
			d.removeEntry(path, have.Children[i])
		}
		var err error
		if i < len(have.Children) && have.Children[i].Name == e.Name {
			err = d.both(join(path, e.Name), have.Children[i], e)
			i++
		} else {
			err = d.missing(path, have, e)
		}
		if err != nil {
			return err
		}
	}
	for ; i < len(have.Children); i++ {
		d.removeEntry(path, have.Children[i])
	}
	return nil
}

// both compares a name that both have.
func (d *planner) both(path string, have *scan.Node, want *object.Entry) error {
	switch {
	case have.Kind == object.Dir && want.Kind == object.Dir:
		return d.dir(path, have, want)
	case have.Kind == object.Dir:
		d.change(path, Retype)
		d.vacate(path, have, true)
		d.put(operation{do: doPut, path: path, want: *want, like: have})
	case want.Kind == object.Dir:
		d.change(path, Retype)
		d.take(path, have)
		return d.makeDir(path, have, want)
	case have.Kind != want.Kind:
		d.change(path, Retype)
		d.put(operation{do: doPut, path: path, want: *want, was: have, like: have})
	case have.Data != want.Data || have.Target != want.Target:
		d.change(path, Replace)
		d.put(operation{do: doPut, path: path, want: *want, was: have, like: have})
	case !d.sameAttributes(&have.Entry, want) || have.Group != want.Group:
		d.change(path, Attributes)
		d.file(operation{do: doAttributes, path: path, want: *want, was: have, like: have})
	}
	return nil
}

// file decides whether a file or link whose attributes alone differ can be changed in place. An inode that has names
// which this tree does not know must not be: they would change with it.
func (d *planner) file(op operation) {
	switch {
	case op.was.Group != op.want.Group:
		op.do = doPut
		d.put(op)
	case op.was.Group != "":
		d.inPlace[op.was.Group] = append(d.inPlace[op.was.Group], op)
	case op.was.Stat.Nlink == 1:
		d.attributes(op)
	default:
		op.do = doPut
		d.put(op)
	}
}

// missing is a name that only the checkpoint has. Something that is not captured can stand there all the same.
func (d *planner) missing(dir string, parent *scan.Node, want *object.Entry) error {
	path := join(dir, want.Name)
	d.change(path, Create)
	if f, ok := d.foreignAt(path); ok {
		d.displace(f, true)
	}
	if want.Kind == object.Dir {
		return d.makeDir(path, parent, want)
	}
	d.put(operation{do: doPut, path: path, want: *want, like: parent})
	return nil
}

// makeDir plans a directory with all that is in it.
func (d *planner) makeDir(path string, like *scan.Node, want *object.Entry) error {
	d.touching[parentOf(path)] = true
	d.plan.touched[path] = true
	op := operation{do: doMakeDir, path: path, want: *want, like: like}
	d.plan.make = append(d.plan.make, op)
	op.do = doAttributes
	d.attributes(op)
	entries, err := d.tree(want.Data)
	if err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		below := join(path, e.Name)
		d.change(below, Create)
		if e.Kind == object.Dir {
			err = d.makeDir(below, like, e)
		} else {
			d.put(operation{do: doPut, path: below, want: *e, like: like})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeEntry is a name that only the tree has.
func (d *planner) removeEntry(dir string, have *scan.Node) {
	path := join(dir, have.Name)
	if have.Kind != object.Dir {
		d.change(path, Remove)
		d.take(path, have)
		return
	}
	d.vacate(path, have, false)
}

// vacate plans the removal of what is known in a directory, and of the directory, unless something stays in it. Its
// name is needed: then nothing may stay.
func (d *planner) vacate(path string, have *scan.Node, needed bool) {
	for _, f := range d.foreignBelow(path) {
		d.displace(f, needed)
	}
	if !needed && d.stay[path] {
		d.plan.stuck = append(d.plan.stuck, path)
	} else if !needed {
		d.change(path, Remove)
	}
	d.empty(path, have)
}

// empty plans what is in a directory before the directory itself.
func (d *planner) empty(path string, have *scan.Node) {
	d.plan.touched[path] = true
	for _, c := range have.Children {
		below := join(path, c.Name)
		if c.Kind == object.Dir {
			if !d.stay[below] {
				d.change(below, Remove)
			}
			d.empty(below, c)
			continue
		}
		d.change(below, Remove)
		d.take(below, c)
	}
	if !d.stay[path] {
		d.touching[parentOf(path)] = true
		d.plan.remove = append(d.plan.remove, operation{do: doRemoveDir, path: path, was: have})
	}
}

func (d *planner) take(path string, have *scan.Node) {
	d.touching[parentOf(path)] = true
	d.plan.remove = append(d.plan.remove, operation{do: doTake, path: path, was: have})
}

func (d *planner) put(op operation) {
	d.touching[parentOf(op.path)] = true
	if op.want.Group != "" {
		d.regroup[op.want.Group] = append(d.regroup[op.want.Group], len(d.plan.put))
	}
	d.plan.put = append(d.plan.put, op)
}

func (d *planner) attributes(op operation) { d.plan.set = append(d.plan.set, op) }

func (d *planner) change(path string, op Op) {
	d.plan.changes = append(d.plan.changes, Change{Path: path, Op: op})
}

// sameAttributes compares what is neither bytes nor names.
func (d *planner) sameAttributes(a, b *object.Entry) bool {
	sameTime := a.Sec == b.Sec && a.Nsec == b.Nsec || d.mtime == MTimeTouch && b.Kind == object.File
	return sameTime && a.Mode == b.Mode && a.UID == b.UID && a.GID == b.GID && slices.Equal(a.Xattrs, b.Xattrs)
}
