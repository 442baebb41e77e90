// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"os"
	"slices"
	"strings"

	"github.com/evoseal/containment/rollback"
)

// foreignCases are about what stands in the tree and in no checkpoint.
func foreignCases() []Case {
	return []Case{
		newCase("F1", "directory-must-go", 0, "a directory is removed with a repository in it", directoryMustGo),
		newCase("F2", "name-is-needed", 0, "what the store does not know is overwritten", nameIsNeeded),
		newCase("F3", "too-large-to-save", 0, "what cannot be saved before the restore is lost by it", tooLargeToSave),
		newCase("F4", "added-files", 0, "what was added since the checkpoint cannot be had back", addedFiles),
	}
}

// inQuarantine finds where a path was moved to and demands that it is there.
func (s *scene) inQuarantine(r *rollback.Restoration, path string) string {
	for _, q := range r.Quarantined {
		if q.Path != path {
			continue
		}
		_, err := os.Lstat(q.Where)
		s.want(err == nil, "%s is said to be quarantined at %s, but %v", path, q.Where, err)
		s.want(q.Why != "" && !strings.HasPrefix(q.Where, s.tree+"/"), "%s: quarantined at %q, because %q", path, q.Where,
			q.Why)
		return q.Where
	}
	s.fail("%s is not among the quarantined: %v", path, r.Quarantined)
	return ""
}

func directoryMustGo(s *scene) {
	s.file("f", "f")
	sub := s.subject()
	want, c := s.look(), s.checkpoint(sub)
	s.file("f", "bad").file("new/sub/x", "x").file("new/sub/.git/HEAD", "ref").file("new/other", "o")
	before := s.look()
	r, err := sub.Restore(s.ctx, c.ID, s.tree)
	s.refused("restore over a new repository", err, rollback.ErrIncomplete)
	s.want(r != nil, "no restoration beside %v", err)
	s.want(slices.ContainsFunc(r.Kept, func(f rollback.Foreign) bool { return strings.HasPrefix(f.Path, "new") }),
		"Kept is %v", r.Kept)
	after := s.look()
	s.untouched("the new repository", before.Under("new/sub/.git"), after.Under("new/sub/.git"))
	s.same("the rest", want.Without("."), after.Without(".", "new"))
	for _, path := range []string{"new/sub/x", "new/other"} {
		_, there := after[path]
		s.want(!there, "%s is still there", path)
	}

	s.opt.Foreign = rollback.ForeignQuarantine
	s.file("f", "bad").file("new/sub/x", "x")
	sub = s.again()
	r = s.restore(sub, c.ID)
	s.same("the tree after a restore that may move things", want, s.look())
	for _, q := range r.Quarantined {
		moved := s.lookAt(s.inQuarantine(r, q.Path))
		for name, n := range moved {
			if strings.HasSuffix(name, "HEAD") || strings.HasSuffix(q.Path, "HEAD") {
				s.want(n.Sum == before["new/sub/.git/HEAD"].Sum, "the quarantined HEAD has other bytes")
				return
			}
		}
	}
	s.fail("the new repository is not in quarantine: %v", r.Quarantined)
}

func nameIsNeeded(s *scene) {
	s.opt.Special, s.opt.Exclude = rollback.SpecialSkip, []string{"*.cache/inner"}
	s.file("f", "f").file("d/x", "x").file("g.cache", "a file")
	sub := s.subject()
	want, c := s.look(), s.checkpoint(sub)
	for name, block := range map[string]func(){
		"f":       func() { s.remove("f").fifo("f") },
		"d":       func() { s.remove("d").fifo("d") },
		"g.cache": func() { s.remove("g.cache").file("g.cache/inner", "excluded") },
	} {
		s.opt.Foreign = rollback.ForeignKeep
		sub = s.again()
		block()
		before := s.look()
		_, err := sub.Restore(s.ctx, c.ID, s.tree)
		s.refused("restore over something foreign at "+name, err, rollback.ErrBlocked)
		s.untouched("the tree after it", before, s.look())
		s.opt.Foreign = rollback.ForeignQuarantine
		r := s.restore(s.again(), c.ID)
		s.same("the tree after a restore that may move things", want, s.look())
		s.want(len(r.Quarantined) > 0, "%s: nothing is quarantined", name)
		for _, q := range r.Quarantined {
			s.inQuarantine(r, q.Path)
		}
	}
}

func tooLargeToSave(s *scene) {
	s.opt.Limits.FileSize = 10_000
	s.file("f", "f").file("d/x", "x")
	sub := s.subject()
	want, c := s.look(), s.checkpoint(sub)
	huge := strings.Repeat("unsaved ", 5_000)
	s.file("f", huge).file("d/huge", huge)
	before := s.look()
	_, err := sub.Restore(s.ctx, c.ID, s.tree)
	s.refused("restore over a file that is too large to save", err, rollback.ErrTooLarge)
	s.untouched("the tree after it", before, s.look())
	s.opt.Foreign = rollback.ForeignQuarantine
	r := s.restore(s.again(), c.ID)
	s.same("the tree after a restore that may move things", want, s.look())
	for _, path := range []string{"f", "d/huge"} {
		got, err := os.ReadFile(s.inQuarantine(r, path))
		s.want(err == nil && string(got) == huge, "the quarantined %s has other bytes (%v)", path, err)
	}
}

// addedFiles: what a restore removes was saved before, whatever an ignore file says.
func addedFiles(s *scene) {
	s.file("src/main.go", "good")
	sub := s.subject()
	c := s.checkpoint(sub)
	s.file(".gitignore", "/output\n").file("output/result.bin", "hours of work").file("notes.txt",
		"mine").mkdir("data/empty")
	s.link("data/link", "../notes.txt").file("src/main.go", "bad")
	with := s.look()
	r := s.restore(sub, c.ID)
	s.want(!r.Safety.IsZero(), "there is no safety checkpoint")
	s.restore(s.again(), r.Safety)
	s.same("the tree after undoing the restore", with, s.look())
}
