// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback"
)

func (p *plain) Verify(ctx context.Context, id rollback.ID) error {
	unlock, err := p.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	names, err := os.ReadDir(p.dir + "/ckpt")
	if err != nil {
		return err
	}
	var faults []error
	for _, name := range names {
		one, err := rollback.ParseID(name.Name())
		if err != nil {
			faults = append(faults, &rollback.CorruptError{Object: name.Name(), Why: err.Error()})
			continue
		}
		if !id.IsZero() && id != one {
			continue
		}
		faults = append(faults, p.verify(one)...)
		if p.d == firstFault && len(faults) > 0 {
			return faults[0]
		}
	}
	return errors.Join(faults...)
}

func (p *plain) verify(id rollback.ID) (faults []error) {
	m, err := p.manifest(id)
	if err != nil {
		return []error{err}
	}
	lists, err := p.load(m)
	if err != nil {
		faults = append(faults, err)
	}
	for _, e := range flat(lists) {
		if e.kind() == unix.S_IFREG {
			if _, err := p.get("blobs", e.Data); err != nil {
				faults = append(faults, err)
			}
		}
	}
	return faults
}

func (p *plain) All(ctx context.Context) iter.Seq2[rollback.Checkpoint, error] {
	return func(yield func(rollback.Checkpoint, error) bool) {
		all, err := p.all()
		if err != nil {
			yield(rollback.Checkpoint{}, err)
		}
		for _, m := range all {
			if !yield(m.Checkpoint, nil) {
				return
			}
		}
	}
}

func (p *plain) Pin(ctx context.Context, id rollback.ID, why string) error {
	unlock, err := p.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := p.manifest(id); err != nil {
		return err
	}
	return p.write(p.dir+"/pins/"+id.String(), []byte(why))
}

func (p *plain) Prune(ctx context.Context, r rollback.Retention) (rollback.Pruned, error) {
	unlock, err := p.lock(ctx)
	if err != nil {
		return rollback.Pruned{}, err
	}
	defer unlock()
	if p.d == pruneIgnoresLock {
		unlock()
		time.Sleep(2 * time.Millisecond)
	}
	all, err := p.all()
	if err != nil {
		return rollback.Pruned{}, err // what cannot be read cannot be proven dead
	}
	var done rollback.Pruned
	live := map[string]bool{}
	var stay, go_ []manifest
	for i, m := range all {
		if p.stays(all[:i], m, r) {
			stay = append(stay, m)
		} else {
			go_ = append(go_, m)
		}
	}
	for _, m := range stay {
		if err := p.reach(m, live); err != nil {
			return done, err
		}
	}
	if p.d == pruneDataFirst {
		if err := p.sweep(live, &done); err != nil {
			return done, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, m := range go_ {
		if err := os.Remove(p.dir + "/ckpt/" + m.Checkpoint.ID.String()); err != nil {
			return done, err
		}
		done.Checkpoints = append(done.Checkpoints, m.Checkpoint.ID)
	}
	return done, p.sweep(live, &done)
}

// stays decides about one checkpoint; newer are those that are newer.
func (p *plain) stays(newer []manifest, m manifest, r rollback.Retention) bool {
	c := m.Checkpoint
	sameTree, sameKind := 0, 0
	for _, n := range newer {
		if n.Checkpoint.Tree == c.Tree {
			sameTree++
			if n.Checkpoint.Kind == c.Kind {
				sameKind++
			}
		}
	}
	if sameTree == 0 || c.Pinned != "" && p.d != prunesPinned {
		return true
	}
	most := r.User
	if c.Kind == rollback.Safety {
		most = r.Safety
	}
	return (most == 0 || sameKind < most) && (r.MaxAge == 0 || time.Since(c.Time) < r.MaxAge) &&
		(r.MaxBytes == 0 || p.size() <= r.MaxBytes)
}

func (p *plain) size() (sum int64) {
	_ = filepath.WalkDir(p.dir+"/blobs", func(_ string, d fs.DirEntry, err error) error {
		if info, e := d.Info(); err == nil && e == nil && d.Type().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// reach marks the blobs of a checkpoint.
func (p *plain) reach(m manifest, live map[string]bool) error {
	lists, err := p.load(m)
	if err != nil {
		return err
	}
	live[m.Root.Data] = true
	for _, e := range flat(lists) {
		live[e.Data] = true
		if e.kind() == unix.S_IFREG && e.Size > wholeFile {
			return errors.New("pruning with large files is left out of this store")
		}
	}
	return nil
}

func (p *plain) sweep(live map[string]bool, done *rollback.Pruned) error {
	names, err := os.ReadDir(p.dir + "/blobs")
	if err != nil {
		return err
	}
	for _, name := range names {
		if !live[name.Name()] && !strings.HasPrefix(name.Name(), "tmp") {
			if err := os.Remove(p.dir + "/blobs/" + name.Name()); err != nil {
				return err
			}
			done.Packs++
		}
	}
	return nil
}
