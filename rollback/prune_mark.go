// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"

	"github.com/evoseal/containment/rollback/internal/object"
)

// mark collects what the kept ones need: first those that stay anyway, then the others from the newest on, as long as
// MaxBytes allows. What is dropped for its sake is taken out of keep.
func (p *pruner) mark(ctx context.Context, all []listed, held, keep map[ID]bool) error {
	for _, l := range all {
		if held[l.id] {
			if err := p.reach(ctx, l, p.live); err != nil {
				return err
			}
		}
	}
	for k := range p.live {
		p.bytes += p.s.packs.StoredLen(k)
	}
	full := false
	for _, l := range all {
		if held[l.id] || !keep[l.id] {
			continue
		}
		more := map[object.Key]struct{}{}
		if !full {
			if err := p.reach(ctx, l, more); err != nil {
				return err
			}
		}
		var size int64
		for k := range more {
			size += p.s.packs.StoredLen(k)
		}
		if full = full || p.r.MaxBytes > 0 && p.bytes+size > p.r.MaxBytes; full {
			delete(keep, l.id)
			continue
		}
		p.bytes += size
		for k := range more {
			p.live[k] = struct{}{}
		}
	}
	return nil
}

// reach adds to found what a checkpoint needs and is not live yet.
func (p *pruner) reach(ctx context.Context, l listed, found map[object.Key]struct{}) error {
	if (l.m.Skipped != object.Hash{}) {
		p.visit(object.Key{Type: object.Skipped, Hash: l.m.Skipped}, found)
	}
	return corrupt(l.id, p.dir(ctx, l.m.Root.Data, found))
}

func (p *pruner) visit(k object.Key, found map[object.Key]struct{}) (first bool) {
	_, before := p.live[k]
	_, now := found[k]
	if !before && !now {
		found[k] = struct{}{}
	}
	return !before && !now
}

func (p *pruner) dir(ctx context.Context, k object.Key, found map[object.Key]struct{}) error {
	if !p.visit(k, found) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := p.s.tree(k)
	if err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		switch {
		case e.Kind == object.Dir:
			err = p.dir(ctx, e.Data, found)
		case e.Kind == object.File && p.visit(e.Data, found) && e.Data.Type == object.Chunks:
			err = p.chunks(e, found)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *pruner) chunks(e *object.Entry, found map[object.Key]struct{}) error {
	chunks, err := p.s.chunks(e)
	for _, c := range chunks {
		if !c.Hole {
			p.visit(object.Key{Type: object.Blob, Hash: c.Hash}, found)
		}
	}
	return err
}

func (p *pruner) isLive(k object.Key) bool {
	_, ok := p.live[k]
	return ok
}
