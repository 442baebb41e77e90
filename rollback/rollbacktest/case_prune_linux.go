// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/evoseal/containment/rollback"
)

// pruneCases are about what is deleted, and what several users of a store do to each other.
func pruneCases() []Case {
	return []Case{
		newCase("G1", "retention", Prunes|Verifies,
			"a pinned or the newest checkpoint is deleted, or one that stays is damaged", retention),
		newCase("G3", "incremental", 0, "each checkpoint stores the tree again", incremental),
		newCase("L3", "prune-meanwhile", Prunes|Verifies, "pruning takes what a checkpoint is just about to use",
			pruneMeanwhile),
		newCase("L4", "many-callers", 0, "calls at the same time disturb each other", manyCallers),
		newCase("L5", "two-trees", 0, "the checkpoints of two trees are mixed up", twoTrees),
	}
}

func retention(s *scene) {
	retentions := []rollback.Retention{{}, {User: 1}, {User: 1, Safety: 1}, {MaxAge: time.Nanosecond}, {MaxBytes: 1},
		{User: 1, Safety: 1, MaxAge: time.Nanosecond, MaxBytes: 1, RepackBytes: 1}}
	sub := s.subject()
	for round, r := range retentions {
		first := s.checkpoint(sub)
		ids, trees := s.states(sub, 6)
		s.must(sub.(Pruner).Pin(s.ctx, ids[2], fmt.Sprint("round ", round)))
		pruned, err := sub.(Pruner).Prune(s.ctx, r)
		s.want(err == nil, "prune %+v: %v", r, err)
		if r == (rollback.Retention{}) {
			s.want(len(pruned.Checkpoints) == 0, "the zero Retention deletes %v", pruned.Checkpoints)
		} else {
			s.want(slices.Contains(pruned.Checkpoints, first.ID), "prune %+v keeps the oldest; it deletes %v", r,
				pruned.Checkpoints)
			_, err := sub.Restore(s.ctx, first.ID, s.tree)
			s.refused("restore of a deleted checkpoint", err, rollback.ErrNotFound)
		}
		sub = s.again()
		err = sub.(Verifier).Verify(s.ctx, rollback.ID{})
		s.want(err == nil, "prune %+v leaves a store that does not verify: %v", r, err)
		for i, id := range ids {
			deleted := slices.Contains(pruned.Checkpoints, id)
			s.want(!deleted || i != 2 && i != 5, "prune %+v deletes a pinned or the newest checkpoint", r)
			if !deleted {
				s.restore(sub, id)
				s.same(fmt.Sprintf("prune %+v: a checkpoint that stays", r), trees[i], s.look())
			}
		}
	}
	if _, err := sub.(Pruner).Prune(s.ctx, rollback.Retention{User: 1, Safety: 1}); err != nil {
		s.fail("prune: %v", err)
	}
}

func incremental(s *scene) {
	s.opt.Codec = rollback.CodecNone // the bytes are random; there is nothing to compress
	data := make([]byte, 20_000)
	source := rand.NewChaCha8([32]byte{1})
	for i := range 200 {
		_, _ = source.Read(data)
		s.file(fmt.Sprintf("d%02d/f%d", i%20, i), string(data))
	}
	sub := s.subject()
	s.checkpoint(sub)
	one, edits := s.used(), int64(0)
	for i := range 100 {
		_, _ = source.Read(data)
		s.file(fmt.Sprintf("d%02d/f%d", i%20, i), string(data))
		edits += int64(len(data))
		s.checkpoint(sub)
		if i%20 != 19 {
			continue
		}
		const perCheckpoint = 8 << 10 // for what describes it
		now, most := s.used(), one*11/10+edits+int64(i+1)*perCheckpoint
		s.want(now <= most, "one checkpoint takes %d bytes, %d more with %d bytes of edits take %d, want at most %d",
			one, i+1, edits, now, most)
	}
}

// pruneMeanwhile: a checkpoint that refers to old bytes must not lose them to a Prune that thinks they are dead.
func pruneMeanwhile(s *scene) {
	sub := s.subject()
	other := s.subject() // a second user of the same store
	for i := range 30 {
		s.file(fmt.Sprint("f", i), fmt.Sprint("content ", i))
	}
	s.checkpoint(sub)
	var lock sync.Mutex
	deleted := map[rollback.ID]bool{}
	stop := meanwhile(func(int) error {
		time.Sleep(time.Millisecond) // the lock is not for one alone
		p, err := other.(Pruner).Prune(s.ctx, rollback.Retention{User: 3, Safety: 3})
		lock.Lock()
		defer lock.Unlock()
		for _, id := range p.Checkpoints {
			deleted[id] = true
		}
		if errors.Is(err, rollback.ErrLocked) {
			return nil
		}
		return err
	})
	taken := map[rollback.ID]Tree{}
	for i := range 20 {
		// Files vanish and come back, so that dead bytes are wanted again.
		name := fmt.Sprint("f", i%5)
		if _, err := os.Lstat(s.path(name)); err == nil {
			s.remove(name)
		} else {
			s.file(name, "content "+name[1:])
		}
		want := s.look()
		taken[s.checkpoint(sub).ID] = want
	}
	err := stop()
	s.want(err == nil, "prune during checkpoints: %v", err)
	sub = s.again()
	err = sub.(Verifier).Verify(s.ctx, rollback.ID{})
	s.want(err == nil, "verify afterwards: %v", err)
	left := 0
	for id, want := range taken {
		if !deleted[id] {
			s.restore(sub, id)
			s.same("a checkpoint that stays", want, s.look())
			left++
		}
	}
	s.want(left > 0, "every checkpoint was deleted")
}

// manyCallers: after calls at the same time the tree is one of the states, and every checkpoint holds one.
func manyCallers(s *scene) {
	sub := s.subject()
	ids, trees := s.states(sub, 4)
	var group sync.WaitGroup
	failed := make(chan error, 100)
	for i := range 4 {
		group.Go(func() {
			for j := range 6 {
				if _, err := sub.Restore(s.ctx, ids[(i+j)%4], s.tree); err != nil {
					failed <- fmt.Errorf("restore: %w", err)
				}
				if _, err := sub.Checkpoint(s.ctx, s.tree, rollback.Meta{}); err != nil {
					failed <- fmt.Errorf("checkpoint: %w", err)
				}
			}
		})
	}
	group.Wait()
	close(failed)
	for err := range failed {
		s.fail("%v", err)
	}
	now := s.look()
	one := slices.ContainsFunc(trees, func(t Tree) bool { return len(Differences(t, now)) == 0 })
	s.want(one, "the tree is none of the states that were restored")
	if v, ok := sub.(Verifier); ok {
		err := v.Verify(s.ctx, rollback.ID{})
		s.want(err == nil, "verify afterwards: %v", err)
	}
}

func twoTrees(s *scene) {
	second := s.dir + "/second"
	s.must(os.Mkdir(second, 0o755), os.WriteFile(second+"/f", []byte("second"), 0o644))
	s.file("f", "first")
	sub := s.subject()
	c := s.checkpoint(sub)
	d, err := sub.Checkpoint(s.ctx, second, rollback.Meta{})
	s.want(err == nil, "checkpoint: %v", err)
	s.want(d.Parent.IsZero(), "the first checkpoint of the second tree has the parent %v", d.Parent)
	for id, path := range map[rollback.ID]string{c.ID: second, d.ID: s.tree} {
		before := s.lookAt(path)
		_, err := sub.Restore(s.ctx, id, path)
		s.refused("restore of another tree's checkpoint", err, rollback.ErrTarget)
		s.untouched("the tree after it", before, s.lookAt(path))
	}
	s.file("f", "bad")
	s.restore(sub, c.ID)
	s.holds("f", "first")
}
