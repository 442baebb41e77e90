// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"fmt"
	"time"

	"github.com/evoseal/containment/rollback"
)

// answerCases are about what a store says.
func answerCases() []Case {
	return []Case{
		newCase("R10", "plan", Plans, "the plan is not what the restore does, or it writes", plan),
		newCase("R11", "undo", 0, "a restore cannot be undone", undo),
		newCase("A1", "changes", 0, "the changes that a restore reports are not those that it made", reported),
		newCase("A2", "list", Lists, "checkpoints are missing, out of order or without what the caller said of them", list),
		newCase("A3", "digest", 0, "two trees have one digest, or one tree has two", digests),
	}
}

func plan(s *scene) {
	s.must(sample(s.tree))
	sub := s.subject()
	c := s.checkpoint(sub)
	p, err := sub.(Planner).Plan(s.ctx, c.ID, s.tree)
	s.want(err == nil && len(p.Changes) == 0, "plan for an unchanged tree: %v, %v", p, err)
	s.must(scramble(s.tree))
	before := s.look()
	p, err = sub.(Planner).Plan(s.ctx, c.ID, s.tree)
	s.want(err == nil, "plan: %v", err)
	s.untouched("the tree after a plan", before, s.look())
	s.want(p.Safety.IsZero() && p.To == c.ID, "plan to %v with the safety checkpoint %v", p.To, p.Safety)
	r := s.restore(sub, c.ID)
	s.want(fmt.Sprint(p.Changes) == fmt.Sprint(r.Changes), "planned %v\ndone %v", p.Changes, r.Changes)
	_, err = sub.(Planner).Plan(s.ctx, rollback.ID{1}, s.tree)
	s.refused("plan for an unknown ID", err, rollback.ErrNotFound)
}

func undo(s *scene) {
	s.must(sample(s.tree))
	sub := s.subject()
	good, c := s.look(), s.checkpoint(sub)
	s.must(scramble(s.tree))
	bad := s.look()
	r := s.restore(sub, c.ID)
	s.want(!r.Safety.IsZero() && r.Safety != c.ID, "the safety checkpoint is %v", r.Safety)
	s.same("the tree after the restore", good, s.look())
	sub = s.again()
	r = s.restore(sub, r.Safety)
	s.same("the tree after undoing it", bad, s.look())
	s.restore(sub, r.Safety)
	s.same("the tree after undoing that", good, s.look())
}

func reported(s *scene) {
	s.file("edit", "a").file("gone", "a").mkdir("d").file("d/mode", "m").file("type", "t").link("link",
		"a").file("deep/er/x", "x")
	sub := s.subject()
	c := s.checkpoint(sub)
	s.file("edit", "b").remove("gone").chmod("d/mode", 0o600).remove("type").link("type",
		"t").remove("link").link("link", "b")
	s.file("added/x", "x").remove("deep/er")
	r := s.restore(sub, c.ID)
	ops := map[string]rollback.Op{}
	for _, change := range r.Changes {
		_, twice := ops[change.Path]
		s.want(!twice, "two changes of %q", change.Path)
		ops[change.Path] = change.Op
	}
	for path, want := range map[string]rollback.Op{"edit": rollback.Replace, "gone": rollback.Create,
		"d/mode": rollback.Attributes,
		"type":   rollback.Retype, "link": rollback.Replace, "added": rollback.Remove, "added/x": rollback.Remove,
		"deep/er": rollback.Create, "deep/er/x": rollback.Create} {
		s.want(ops[path] == want, "%q: operation %d, want %d; all: %v", path, ops[path], want, r.Changes)
		delete(ops, path)
	}
	delete(ops, ".")
	delete(ops, "deep") // their times moved
	delete(ops, "d")
	s.want(len(ops) == 0, "reported, but nothing changed there: %v", ops)
}

func list(s *scene) {
	sub := s.subject()
	var taken []rollback.Checkpoint
	begin := time.Now().Add(-time.Second)
	for i := range 5 {
		s.file("f", fmt.Sprint(i))
		s.must(s.err)
		m := rollback.Meta{Label: fmt.Sprint("number ", i), Values: map[string]string{"score": fmt.Sprint(i), "k\n": "\x00"}}
		c, err := sub.Checkpoint(s.ctx, s.tree, m)
		s.want(err == nil, "checkpoint: %v", err)
		s.want(c.Tree == s.tree && c.Kind == rollback.User && c.Time.After(begin), "the checkpoint is %+v", c)
		if i > 0 {
			s.want(c.Parent == taken[i-1].ID && c.Seq > taken[i-1].Seq, "parent %v and number %d after %v and %d",
				c.Parent, c.Seq, taken[i-1].ID, taken[i-1].Seq)
		}
		taken = append(taken, c)
	}
	i := len(taken)
	for c, err := range s.again().(Lister).All(s.ctx) {
		s.want(err == nil, "All: %v", err)
		i--
		s.want(i >= 0 && c.ID == taken[i].ID, "All yields %v, want the newest first", c.ID)
		s.want(c.Meta.Label == fmt.Sprint("number ", i) && c.Meta.Values["k\n"] == "\x00" && c.Digest == taken[i].Digest,
			"All yields %+v", c)
	}
	s.want(i == 0, "All yields %d checkpoints too few", i)
}

// digests: Content is equal where nothing but times and modes differ, Tree only where nothing differs.
func digests(s *scene) {
	s.file("a", "1").file("d/b", "2").link("l", "a").stamp("a", 1, 1).stamp("d", 1, 1).stamp(".", 1, 1)
	sub := s.subject()
	base := s.checkpoint(sub).Digest
	seen := map[rollback.Digest]string{base: "base"}
	contents := map[[32]byte]string{base.Content: "base"}
	change := func(name string, content bool, do func(), undo func()) {
		do()
		s.stamp(".", 1, 1)
		d := s.checkpoint(sub).Digest
		s.want(seen[d] == "", "%s has the digest of %s", name, seen[d])
		seen[d] = name
		if content {
			s.want(contents[d.Content] == "", "%s has the content digest of %s", name, contents[d.Content])
			contents[d.Content] = name
		} else {
			s.want(d.Content == base.Content, "%s changes the content digest", name)
		}
		undo()
		s.stamp(".", 1, 1)
		s.want(s.checkpoint(sub).Digest == base, "the tree before %s has another digest now", name)
	}
	change("bytes", true, func() { s.file("a", "3").stamp("a", 1, 1) }, func() { s.file("a", "1").stamp("a", 1, 1) })
	change("a name", true, func() { s.rename("a", "A") }, func() { s.rename("A", "a") })
	change("a place", true, func() { s.rename("a", "d/a").stamp("d", 1, 1) },
		func() { s.rename("d/a", "a").stamp("d", 1, 1) })
	change("the x bit", true, func() { s.chmod("a", 0o755) }, func() { s.chmod("a", 0o644) })
	change("a mode", false, func() { s.chmod("a", 0o600) }, func() { s.chmod("a", 0o644) })
	change("a time", false, func() { s.stamp("a", 2, 1) }, func() { s.stamp("a", 1, 1) })
	change("an empty directory", true, func() { s.mkdir("e") }, func() { s.remove("e") })
	l := s.look()["l"]
	change("a target", true, func() { s.remove("l").link("l", "b").stamp("l", 3, 3) },
		func() { s.remove("l").link("l", "a").stamp("l", l.Sec, l.Nsec) })
}
