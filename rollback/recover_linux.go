// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Recover ends what crashes interrupted, in all trees of the store: a restore that was committed is carried out to its
// end, one that was not leaves no trace. It may itself be killed at any point and called again. It is called once after
// [Open]; a tree with an unfinished restore refuses every other call.
//
// A Restoration comes back for each tree in which a restore was finished, or something was found that is reported and
// left alone, such as the staging directory of another store. Trees that are gone are passed over. A damaged journal is
// [ErrCorrupt], and nothing is done to its tree. The error holds those of all trees.
func (s *Store) Recover(ctx context.Context) ([]Restoration, error) {
	leave, err := s.enter(ctx, false)
	if err != nil {
		return nil, err
	}
	defer leave()
	keys, err := s.trees()
	if err != nil {
		return nil, err
	}
	var all []Restoration
	var bad faults
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			bad.add(context.Cause(ctx))
			break
		}
		out, err := s.recoverTree(ctx, key)
		bad.add(err)
		if out != nil {
			all = append(all, *out)
		}
	}
	return all, bad.err()
}

// recoverTree returns nil if there is nothing to report.
func (s *Store) recoverTree(ctx context.Context, key string) (*Restoration, error) {
	root, err := s.treeRoot(key)
	if err != nil {
		return nil, err
	}
	t, err := s.openTarget(ctx, root, forRecover)
	if err != nil {
		return nil, s.gone(key, err)
	}
	defer t.close()
	if t.key != key {
		return nil, s.gone(key, &TargetError{Path: root, Reason: "another directory has taken the place of the tree"})
	}
	j, err := s.readJournal(key) // under the tree's lock: nobody is at it
	if err != nil {
		return nil, err
	}
	if j == nil {
		return s.sweepStaging(ctx, t)
	}
	if err := s.checkStale(j); err != nil {
		return nil, err
	}
	m, err := s.manifest(j.To)
	if err != nil {
		return nil, err
	}
	r := s.newRestorer(j.To, m, t)
	r.journal, r.journaled, r.name = j, true, "recover"
	r.out.Safety, r.out.Changes, r.out.Recovered = j.Safety, j.Changes, true
	defer r.closeStaging()
	return r.recover(context.WithoutCancel(ctx))
}

// gone passes over a tree that cannot be opened unless something of it is unfinished.
func (s *Store) gone(key string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrTarget) {
		return err
	}
	j, journalErr := s.readJournal(key)
	if j == nil && journalErr == nil {
		s.log.Info("rollback: a tree is gone", "key", key, "error", err)
		return nil
	}
	return errors.Join(err, journalErr)
}

// checkStale refuses a journal that is older than a checkpoint of its tree. None can be sealed while a journal is
// there, so this one came back: by a removal that the disk lost, or out of a copy of the store. It is set aside. If its
// own safety checkpoint cannot be read nobody knows which of the two it is, and it stays where it is.
func (s *Store) checkStale(j *journal) error {
	name := journalPath(j.TreeKey)
	if _, err := s.manifest(j.Safety); err != nil {
		return errors.Join(err, &CorruptError{ID: j.To, Object: name,
			Why: "the safety checkpoint that it names cannot be read; it was not applied. Bring that manifest back, or " +
				"look at the tree and then move the journal away"})
	}
	last, ok, err := s.last(j.TreeKey)
	if err != nil {
		return err
	}
	if ok && last == j.Safety {
		return nil
	}
	err = s.dir.Rename(name, name+".stale")
	return errors.Join(err, &CorruptError{ID: j.To, Object: name,
		Why: "it is older than the last checkpoint of its tree; it was not applied, and renamed to journal.stale"})
}

// recover goes on where the crash was. It does not ask how far the apply came: it looks at the tree.
func (r *restorer) recover(ctx context.Context) (*Restoration, error) {
	r.step("begin")
	found, err := r.s.rescan(ctx, r.target, r.captureOptions(false), nil, nil)
	if err != nil {
		return r.out, after("scan", err)
	}
	r.found = found
	r.reportMoved()
	if err := r.reopenStaging(); err != nil {
		return r.out, after("stage", err)
	}
	if err := r.useStaging(); err != nil {
		return r.out, after("stage", err)
	}
	r.step("scanned")
	// What was displaced already, or never put in place, is settled first: it frees the room for what is staged again.
	if err := r.settle(ctx); err != nil {
		return r.out, after("settle", err)
	}
	p, err := r.compare()
	if err != nil {
		return r.out, after("compare", err)
	}
	r.allSynced(p)
	if !p.done() {
		if err := r.plan(ctx, p); err != nil {
			return r.out, after("stage", err)
		}
	}
	return r.forward(ctx, p)
}

// reopenStaging makes staging again if somebody took it away. If he put something else in its place, that is his, and
// the journal has to say where ours is before anything is moved.
func (r *restorer) reopenStaging() error {
	switch err := r.openStaging(); err {
	case unix.ENOENT:
		return r.makeStaging()
	case unix.ENOTDIR, unix.ELOOP:
		r.journal.Staging = ""
		if err := r.makeStaging(); err != nil {
			return err
		}
		_, err := r.commit()
		return err
	default:
		return err
	}
}

// allSynced notes every directory that the crashed restore may have changed, as far as the journal tells.
func (r *restorer) allSynced(p *plan) {
	r.synced["."] = true
	for i := range r.journal.Slots {
		r.synced[parentOf(r.journal.Slots[i].Path)] = true
	}
	for _, c := range r.journal.Changes {
		r.synced[c.Path] = true
	}
	r.noteTouched(p)
}

// captureOptions follow the checkpoint and the journal, and not today's options: what it left out is not there to be removed.
func (r *restorer) captureOptions(dry bool) captureOptions {
	m := &r.manifest
	return captureOptions{
		Exclude: m.Exclude, Owner: m.Owner, Xattrs: m.Xattrs, Safety: true, Dry: dry,
		Tolerate: r.journal.Foreign == ForeignQuarantine,
	}
}
