// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/evoseal/containment/rollback"
)

// raceCases are about somebody who works in the tree during a restore.
func raceCases() []Case {
	return []Case{
		newCase("R7", "links-meanwhile", 0, "a link that appears between check and use leads the restore out of the tree",
			linksMeanwhile),
		newCase("R8", "files-meanwhile", 0, "a file that appears after the scan is deleted unsaved", filesMeanwhile),
		newCase("R8b", "edits-meanwhile", 0, "a file that is replaced after the scan is overwritten unsaved", editsMeanwhile),
		newCase("R12", "cancel", 0, "a cancelled restore leaves a mixed tree", cancelled),
	}
}

// settle finishes a restore that failed after its commit point.
func (s *scene) settle(sub Subject, err error) (done []rollback.Restoration) {
	if !errors.Is(err, rollback.ErrPending) {
		return nil
	}
	r, ok := sub.(Recoverer)
	s.want(ok, "a restore ends with %v, and the store offers no Recover", err)
	for range 100 {
		var more []rollback.Restoration
		more, err = r.Recover(s.ctx)
		if done = append(done, more...); err == nil {
			return done
		}
		time.Sleep(time.Millisecond)
	}
	s.fail("Recover: %v", err)
	return nil
}

func linksMeanwhile(s *scene) {
	s.must(os.MkdirAll(s.outside("d/e"), 0o755))
	for _, name := range []string{"f", "d/f", "d/e/f"} {
		s.must(os.WriteFile(s.outside(name), []byte("canary"), 0o644))
	}
	outside := s.lookAt(s.outside(""))
	s.file("f", "f").file("d/f", "d/f").file("d/e/f", "d/e/f").mkdir("aside")
	sub := s.subject()
	want, c := s.look(), s.checkpoint(sub)
	for round := range 12 {
		s.file("f", fmt.Sprint("bad ", round)).file("d/f", "bad").file("d/e/f", "bad").file("d/e/g", "bad")
		name, target := []string{"d", "d/e", "f"}[round%3], []string{"../outside/d", "../../outside/d/e",
			"../outside/f"}[round%3]
		s.must(s.err)
		stop := meanwhile(func(int) error {
			// Its own failures are of no interest: the restore moves things under its hands.
			_ = os.Rename(s.path(name), s.path("aside/real"))
			_ = os.Symlink(target, s.path(name))
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
			_ = os.Remove(s.path(name))
			_ = os.Rename(s.path("aside/real"), s.path(name))
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
			return nil
		})
		_, err := sub.Restore(s.ctx, c.ID, s.tree)
		s.must(stop())
		s.untouched("what lies outside", outside, s.lookAt(s.outside("")))
		s.settle(sub, err)
		s.restore(sub, c.ID)
		s.same("the tree after it came to rest", want, s.look())
	}
}

// filesMeanwhile: each file that appears is in the tree, in the safety checkpoint or in quarantine afterwards.
func filesMeanwhile(s *scene) {
	s.file("f", "f").file("keep/k", "k")
	sub := s.subject()
	c := s.checkpoint(sub)
	for round := range 8 {
		for i := range 20 {
			s.file(fmt.Sprintf("go/%d/x", i), "x")
		}
		s.file("f", "bad")
		s.must(s.err)
		written := map[string]string{} // where, what
		stop := meanwhile(func(i int) error {
			text := fmt.Sprintf("token %d.%d", round, i)
			path := []string{"go/%d", "keep", "."}[i%3]
			if i%3 == 0 {
				path = fmt.Sprintf(path, i%20)
			}
			path += fmt.Sprintf("/new-%d-%d", round, i)
			// Whole at once: what goes into a file that was judged already is beyond any store.
			if err := os.WriteFile(s.outside("new"), []byte(text), 0o644); err != nil {
				return err
			}
			if os.Rename(s.outside("new"), s.path(path)) == nil {
				written[path] = text
			}
			time.Sleep(200 * time.Microsecond)
			return nil
		})
		r, err := sub.Restore(s.ctx, c.ID, s.tree)
		s.must(stop())
		found := s.tokens(sub, r, s.settle(sub, err))
		for path, text := range written {
			s.want(found[text], "what was written to %s during the restore is nowhere (restore: %v)", path, err)
		}
		s.restore(sub, c.ID)
	}
}

// tokens collects the content of every small file in the tree, in quarantine, and of the safety checkpoint. What a
// failed restore has quarantined is reported by it or by the Recover that finished it.
func (s *scene) tokens(sub Subject, r *rollback.Restoration, finished []rollback.Restoration) map[string]bool {
	found := map[string]bool{}
	collect := func(dir string) {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				data, err := os.ReadFile(path)
				s.must(err)
				found[string(data)] = len(data) < 100
			}
			return nil
		})
	}
	collect(s.tree)
	for _, f := range finished {
		for _, q := range f.Quarantined {
			collect(q.Where)
		}
	}
	if r == nil {
		return found
	}
	for _, q := range r.Quarantined {
		collect(q.Where)
	}
	if !r.Safety.IsZero() {
		undo := s.restore(sub, r.Safety)
		collect(s.tree)
		for _, q := range undo.Quarantined {
			collect(q.Where)
		}
	}
	return found
}

func editsMeanwhile(s *scene) {
	for i := range 10 {
		s.file(fmt.Sprintf("d/%d", i), "good")
	}
	sub := s.subject()
	c := s.checkpoint(sub)
	took := 4 * time.Millisecond // of the last restore
	for round := range 16 {
		for i := range 10 {
			s.file(fmt.Sprintf("d/%d", i), "bad")
		}
		s.must(s.err, os.WriteFile(s.outside("edit"), []byte(fmt.Sprint("edit ", round)), 0o644))
		done := make(chan error, 1)
		delay := rand.N(took)
		go func() {
			time.Sleep(delay)
			done <- os.Rename(s.outside("edit"), s.path(fmt.Sprintf("d/%d", rand.IntN(10))))
		}()
		begin := time.Now()
		r, err := sub.Restore(s.ctx, c.ID, s.tree)
		took = time.Since(begin)
		s.must(<-done)
		found := s.tokens(sub, r, s.settle(sub, err))
		s.want(found[fmt.Sprint("edit ", round)], "an edit during the restore is nowhere (restore: %v)", err)
		s.restore(sub, c.ID)
	}
}

func cancelled(s *scene) {
	s.must(sample(s.tree))
	sub := s.subject()
	good, c := s.look(), s.checkpoint(sub)
	gone, cancel := context.WithCancel(s.ctx)
	cancel()
	_, err := sub.Checkpoint(gone, s.tree, rollback.Meta{})
	s.refused("checkpoint with a cancelled context", err, context.Canceled)
	s.must(scramble(s.tree))
	bad := s.look()
	b := s.checkpoint(sub)
	_, err = sub.Restore(gone, c.ID, s.tree)
	s.refused("restore with a cancelled context", err, context.Canceled)
	s.untouched("the tree after it", bad, s.look())
	begin := time.Now()
	s.restore(sub, c.ID)
	took := time.Since(begin)
	want, other := good, bad // what stands, what the next restore wants
	for i := range 16 {
		id := b.ID
		if i%2 == 1 {
			id = c.ID
		}
		ctx, cancel := context.WithTimeout(s.ctx, time.Duration(rand.Int64N(int64(took))))
		_, err := sub.Restore(ctx, id, s.tree)
		cancel()
		s.settle(sub, err)
		now := s.look()
		if err != nil && !errors.Is(err, rollback.ErrPending) {
			s.refused("a restore that ran out of time", err, context.DeadlineExceeded)
			s.same("the tree after it", want, now)
			s.want(!hasStaging(now), "a cancelled restore leaves its staging")
			s.restore(sub, id)
			now = s.look()
		}
		s.same("the tree after the restore", other, now)
		want, other = other, want
	}
}

// hasStaging reports whether the tree holds what only a running restore needs.
func hasStaging(t Tree) bool {
	for path := range t {
		if strings.HasPrefix(path, ".rollback-") {
			return true
		}
	}
	return false
}
