// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/rollback"
)

// processCases need a second process: to kill it, to work beside it, or because its identity differs.
func processCases(t *testing.T) []Case {
	st := starter{t.Name()}
	bind := func(f func(starter, *scene)) func(*scene) { return func(s *scene) { f(st, s) } }
	all := []Case{
		newCase("L1", "killed-holder", Recovers, "a dead process still holds a lock", bind(killedHolder)),
		newCase("L2", "two-processes", 0, "two processes on one tree mix their states", bind(twoProcesses)),
		newCase("X2", "killed-restore", Recovers, "a killed restore leaves a tree that is neither old nor new",
			bind(killedRestore)),
		newCase("X2b", "killed-checkpoint", Recovers|Verifies, "an acknowledged checkpoint is gone, or half of one is there",
			bind(killedCheckpoint)),
		newCase("G2", "killed-prune", Recovers|Verifies|Prunes, "a killed prune takes what stays", bind(killedPrune)),
		newCase("X5", "failing-writes", Recovers, "a write that fails spoils the tree or the store", bind(failingWrites)),
	}
	for _, c := range childCases() {
		if !c.root {
			all = append(all, c.inChild(st))
		}
	}
	return all
}

// start runs a job on the scene's tree.
func (s *scene) start(st starter, store, kind string, limit uint64, ids ...rollback.ID) *worker {
	s.must(s.err)
	w, err := st.start(job{Kind: kind, Store: store, Tree: s.tree, Options: s.opt, IDs: ids, Limit: limit, Case: s.id},
		nil)
	s.must(err)
	return w
}

// atOnce is how long a call may take after a kill: generous for a busy machine, short for a lock that nobody holds.
const atOnce = 8 * time.Second

// killed runs a job, kills it and finishes what it left with a new subject.
func (s *scene) killed(st starter, kind string, ids ...rollback.ID) (lines []string, next Subject) {
	s.close()
	w := s.start(st, s.store(), kind, 0, ids...)
	lines, err := w.kill()
	s.want(err == nil, "%v", err)
	ctx, cancel := context.WithTimeout(s.ctx, atOnce)
	defer cancel()
	next = s.subject()
	_, err = next.(Recoverer).Recover(ctx)
	s.want(err == nil, "Recover after a kill: %v", err)
	return lines, next
}

// ab makes two states of the tree, with what no checkpoint holds in it, and returns both.
func (s *scene) ab() (ids []rollback.ID, trees []Tree) {
	s.opt.Exclude = []string{"cache"}
	s.must(sample(s.tree))
	s.file(".git/HEAD", "ref").file("cache/mine", "excluded").file("src/.git", "gitdir: x").file("src/cache/mine",
		"excluded")
	sub := s.subject()
	ids, trees = append(ids, s.checkpoint(sub).ID), append(trees, s.look())
	s.must(scramble(s.tree))
	ids, trees = append(ids, s.checkpoint(sub).ID), append(trees, s.look())
	return ids, trees
}

// oneOf returns which of the trees stands, and ends the case if none does.
func (s *scene) oneOf(what string, trees []Tree) int {
	now := s.look()
	for i, t := range trees {
		if len(Differences(t, now)) == 0 {
			return i
		}
	}
	s.fail("%s: the tree is none of the states; from the first it differs in %s; from the last in %s", what,
		few(Differences(trees[0], now)), few(Differences(trees[len(trees)-1], now)))
	return -1
}

func killedHolder(st starter, s *scene) {
	ids, _ := s.ab()
	kinds := []string{"restores", "checkpoints"}
	if Offers(s.subs[0])&Prunes != 0 {
		kinds = append(kinds, "prunes")
	}
	if Offers(s.subs[0])&Verifies != 0 {
		kinds = append(kinds, "verifies")
	}
	for _, kind := range kinds {
		_, sub := s.killed(st, kind, ids...)
		ctx, cancel := context.WithTimeout(s.ctx, atOnce)
		defer cancel()
		c, err := sub.Checkpoint(ctx, s.tree, rollback.Meta{})
		s.want(err == nil, "the first checkpoint after a kill among %s: %v", kind, err)
		_, err = sub.Restore(ctx, c.ID, s.tree)
		s.want(err == nil, "the first restore after a kill among %s: %v", kind, err)
		if p, ok := sub.(Pruner); ok && kind != "prunes" {
			_, err = p.Prune(ctx, rollback.Retention{})
			s.want(err == nil, "the first prune after a kill among %s: %v", kind, err)
		}
		if kind == "prunes" {
			ids = []rollback.ID{c.ID}
		}
	}
}

// twoProcesses lets two workers restore one tree, once by one store and once each by its own.
func twoProcesses(st starter, s *scene) {
	ids, trees := s.ab()
	second := s.dir + "/second-store"
	o := s.opt
	other, err := s.open(second, &o)
	s.want(err == nil, "open: %v", err)
	s.subs = append(s.subs, other)
	var theirs []rollback.ID
	for _, id := range ids {
		s.restore(s.subs[0], id)
		c, err := other.Checkpoint(s.ctx, s.tree, rollback.Meta{})
		s.want(err == nil, "checkpoint by a second store: %v", err)
		theirs = append(theirs, c.ID)
	}
	s.close()
	const rounds = 12
	for _, pair := range []struct {
		store string
		ids   []rollback.ID
	}{{s.store(), ids}, {second, theirs}} {
		// They end by themselves: what one store leaves to be finished is unknown to the other.
		a := s.start(st, s.store(), "restores a while", 0, ids...)
		b := s.start(st, pair.store, "restores a while", 0, pair.ids...)
		err := together(rounds, a, b)
		s.want(err == nil, "two processes restore one tree: %v", err)
		s.oneOf("after two processes", trees)
	}
}

func killedRestore(st starter, s *scene) {
	ids, trees := s.ab()
	const kills = 6
	for range kills {
		_, sub := s.killed(st, "restores", ids...)
		at := s.oneOf("after a kill and Recover", trees)
		s.restore(sub, ids[1-at])
		s.same("the next restore", trees[1-at], s.look())
		if v, ok := sub.(Verifier); ok {
			err := v.Verify(s.ctx, rollback.ID{})
			s.want(err == nil, "verify after a kill: %v", err)
		}
	}
}

func killedCheckpoint(st starter, s *scene) {
	s.must(sample(s.tree))
	s.subject()
	const kills = 5
	for range kills {
		lines, sub := s.killed(st, "checkpoints")
		err := sub.(Verifier).Verify(s.ctx, rollback.ID{})
		s.want(err == nil, "verify after a kill: %v", err)
		for _, line := range []string{lines[0], lines[len(lines)-1]} {
			text, number, _ := strings.Cut(line, " ")
			id, err := rollback.ParseID(text)
			s.must(err)
			s.restore(sub, id)
			s.holds("count", "number "+number)
		}
		s.checkpoint(sub)
	}
}

func killedPrune(st starter, s *scene) {
	s.must(sample(s.tree))
	sub := s.subject()
	want, c := s.look(), s.checkpoint(sub)
	s.must(sub.(Pruner).Pin(s.ctx, c.ID, "the good one"))
	const kills = 6
	for range kills {
		_, sub := s.killed(st, "prunes")
		err := sub.(Verifier).Verify(s.ctx, rollback.ID{})
		s.want(err == nil, "verify after a kill: %v", err)
		s.restore(sub, c.ID)
		s.same("the pinned checkpoint", want, s.look())
	}
}

// failingWrites lets every write beyond a length fail: EFBIG, as a full disk would.
func failingWrites(st starter, s *scene) {
	for i, size := range []int{100, 3000, 40_000} {
		s.file(fmt.Sprint("f", i), strings.Repeat(fmt.Sprint(i), size))
	}
	s.opt.Codec = rollback.CodecNone
	sub := s.subject()
	good, c := s.look(), s.checkpoint(sub)
	for i := range 3 {
		s.file(fmt.Sprint("f", i), fmt.Sprint("bad ", i)).file(fmt.Sprint("new", i), strings.Repeat("n", 10_000*i+10))
	}
	failures := 0
	for _, limit := range []uint64{1, 50, 200, 1000, 2500, 5000, 15_000, 38_000} {
		s.close()
		bad := s.look()
		err := s.start(st, s.store(), "checkpoint once", limit).wait()
		s.untouched("the tree after a checkpoint with failing writes", bad, s.look())
		if err = errors.Join(err, s.start(st, s.store(), "restore once", limit, c.ID).wait()); err != nil {
			failures++
		}
		sub = s.subject()
		_, err = sub.(Recoverer).Recover(s.ctx)
		s.want(err == nil, "Recover after failing writes: %v", err)
		if s.oneOf(fmt.Sprintf("writes beyond %d fail", limit), []Tree{bad, good}) == 1 {
			s.file("f2", fmt.Sprint("bad ", limit)).file("new2", strings.Repeat("m", 30_000))
		}
		if v, ok := sub.(Verifier); ok {
			err := v.Verify(s.ctx, rollback.ID{})
			s.want(err == nil, "verify after failing writes: %v", err)
		}
	}
	s.want(failures > 0, "no write failed, or nobody noticed")
	s.restore(sub, c.ID)
	s.same("the tree after a restore that may write", good, s.look())

}
