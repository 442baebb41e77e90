// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/evoseal/containment/rollback/internal/object"
	"github.com/evoseal/containment/rollback/internal/pack"
)

const defaultRepack = 256 << 20 // bytes

// Prune deletes the checkpoints that r does not keep, and then what no checkpoint needs. It does not wait: while a
// checkpoint, a restore or a reader is at work it is [ErrLocked]. What it cannot read it cannot prove to be dead, so one
// unreadable manifest, directory, label or journal stops it before anything was deleted. Killed at any moment it leaves
// more than it should, never less. Damaged packs and what is in quarantine it leaves alone.
func (s *Store) Prune(ctx context.Context, r Retention) (Pruned, error) {
	var done Pruned
	if r.User < 0 || r.Safety < 0 || r.MaxAge < 0 || r.MaxBytes < 0 || r.RepackBytes < 0 {
		return done, fmt.Errorf("rollback: Retention has a negative number: %w", fs.ErrInvalid)
	}
	leave, err := s.enterAs(ctx, lockMode{exclusive: true})
	if err != nil {
		return done, err
	}
	defer leave()
	p := &pruner{s: s, r: r, live: map[object.Key]struct{}{}}
	drop, err := p.decide(ctx)
	if err != nil {
		return done, err
	}
	s.step("prune/decided")
	if len(drop) > 0 {
		if err := s.unlinkManifests(drop); err != nil {
			return done, err
		}
		done.Checkpoints = drop
	}
	s.step("prune/manifests-gone") // what is dead now can be seen by nobody
	err = p.packs(ctx, &done)
	return done, err
}

type pruner struct {
	s     *Store
	r     Retention
	live  map[object.Key]struct{}
	bytes int64 // stored bytes of what is live
}

// decide returns what to delete, and knows afterwards what the others need.
func (p *pruner) decide(ctx context.Context) ([]ID, error) {
	all, err := p.s.list(true)
	if err != nil {
		return nil, err
	}
	var unread faults
	for _, l := range all {
		unread.add(l.err)
	}
	if err := unread.err(); err != nil {
		return nil, fmt.Errorf("rollback: prune: %w", err)
	}
	held, err := p.held(all)
	if err != nil {
		return nil, err
	}
	keep := retain(all, held, p.r, time.Now())
	if err := p.mark(ctx, all, held, keep); err != nil {
		return nil, err
	}
	var drop []ID
	for i := len(all) - 1; i >= 0; i-- { // oldest first
		if !keep[all[i].id] {
			drop = append(drop, all[i].id)
		}
	}
	return drop, nil
}

// held are the checkpoints that no Retention deletes: pinned, newest of a tree, named by a journal.
func (p *pruner) held(all []listed) (map[ID]bool, error) {
	pins, err := p.s.pins()
	if err != nil {
		return nil, err
	}
	journalled, err := p.s.journalIDs()
	if err != nil {
		return nil, err
	}
	held, trees := map[ID]bool{}, map[string]bool{}
	for id := range pins {
		held[id] = true
	}
	for _, id := range journalled {
		held[id] = true
	}
	for _, l := range all {
		if !trees[l.m.TreeKey] {
			trees[l.m.TreeKey], held[l.id] = true, true
		}
	}
	return held, nil
}

// retain applies what needs no look at the data. The list is newest first.
func retain(all []listed, held map[ID]bool, r Retention, now time.Time) map[ID]bool {
	type group struct {
		tree string
		kind Kind
	}
	count, keep := map[group]int{}, map[ID]bool{}
	most := map[Kind]int{User: r.User, Safety: r.Safety}
	for _, l := range all {
		g := group{l.m.TreeKey, l.m.Kind}
		count[g]++
		tooMany := most[g.kind] > 0 && count[g] > most[g.kind]
		tooOld := r.MaxAge > 0 && now.Sub(l.m.Time) > r.MaxAge
		keep[l.id] = held[l.id] || !tooMany && !tooOld
	}
	return keep
}

// packs gives space back: packs without a live object go, those with few are written again.
func (p *pruner) packs(ctx context.Context, done *Pruned) error {
	var dead []pack.Usage
	usage := p.s.packs.Usage(p.isLive)
	for _, u := range usage {
		if u.Live == 0 && !u.Damaged {
			dead = append(dead, u)
		}
	}
	if err := p.remove(dead, done); err != nil {
		return err
	}
	s := p.s
	s.step("prune/dead-packs-gone")
	thin, need, err := p.thin(usage)
	if err != nil || len(thin) == 0 {
		return err
	}
	freed, err := s.packs.Repack(ctx, s.tmp, thin, p.isLive, func() { s.step("prune/repacked") })
	if err != nil {
		return fmt.Errorf("rollback: prune: write %d bytes anew: %w", need, corrupt(ID{}, s.noSpace(err)))
	}
	done.Packs += len(thin)
	done.Bytes += freed
	return nil
}

func (p *pruner) remove(packs []pack.Usage, done *Pruned) error {
	if err := p.s.packs.Remove(packs); err != nil {
		return fmt.Errorf("rollback: prune: %w", err)
	}
	done.Packs += len(packs)
	for _, u := range packs {
		done.Bytes += u.Size
	}
	return nil
}

// thin chooses the packs to write again, within RepackBytes and the free space: those that are less than half live, and
// if the packs hold more than MaxBytes, any with something dead. The thinnest come first.
func (p *pruner) thin(usage []pack.Usage) (thin []pack.Usage, need int64, err error) {
	most := p.r.RepackBytes
	if most == 0 {
		most = defaultRepack
	}
	free, err := p.s.free()
	if err != nil {
		return nil, 0, fmt.Errorf("rollback: %s: %w", p.s.path, err)
	}
	most = min(most, free-free/20) // 5 % for the table, and for others
	var total int64
	for _, u := range usage {
		if u.Live > 0 || u.Damaged {
			total += u.Size
		}
	}
	for _, u := range byLiveShare(usage) {
		tight := p.r.MaxBytes > 0 && total > p.r.MaxBytes && u.Live < u.Objects
		if u.Live == 0 || u.Damaged || 2*u.LiveStored >= u.Stored && !tight || need+u.LiveStored > most {
			continue
		}
		thin = append(thin, u)
		need += u.LiveStored
		total -= u.Size - u.LiveStored
	}
	return thin, need, nil
}
