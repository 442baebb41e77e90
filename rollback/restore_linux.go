// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/rollback/internal/scan"
)

// maxRounds bounds how often a restore compares, stages and applies again because somebody else keeps writing.
const maxRounds = 8

// Restore makes the tree what the checkpoint holds. Until the commit point an error or the end of ctx leaves the tree
// as it was; after it the restore runs to its end whatever ctx says, and an error matches [ErrPending]: then
// [Store.Recover] finishes it. A Restoration comes back with every error after the commit point and with
// [ErrIncomplete]. Nobody else should write to the tree meanwhile; what somebody writes all the same ends in
// quarantine if a restore comes across it.
func (s *Store) Restore(ctx context.Context, id ID, tree string) (*Restoration, error) {
	r, end, err := s.beginRestore(ctx, id, tree, forRestore)
	if err != nil {
		return nil, err
	}
	defer end()
	return r.restore(ctx)
}

// Plan says what Restore would do now. It writes nothing, neither to the tree nor to the store.
func (s *Store) Plan(ctx context.Context, id ID, tree string) (*Restoration, error) {
	r, end, err := s.beginRestore(ctx, id, tree, forPlan)
	if err != nil {
		return nil, err
	}
	defer end()
	start := time.Now()
	c, err := s.capture(ctx, r.target, r.captureOptions(true))
	if err != nil {
		return nil, err
	}
	defer c.abort()
	r.found = c.result
	p, err := r.compare()
	if err != nil {
		return nil, corrupt(r.id, err)
	}
	r.report(p)
	r.out.Quarantined, r.out.Digest = p.leave, digestOf(r.found.Root)
	r.out.Timing.Scan = time.Since(start)
	return r.out, r.incomplete(p)
}

// restorer is one restore, planned, done or recovered.
type restorer struct {
	s         *Store
	id        ID
	manifest  manifest
	target    *target
	journal   *journal
	found     *scan.Result // the tree as it was last read
	staging   int          // descriptor; -1: there is none
	trees     *treeReader
	out       *Restoration
	name      string // of the steps: restore or recover
	journaled bool   // a journal is there: whatever fails now, it stays
	synced    map[string]bool
}

func (s *Store) beginRestore(ctx context.Context, id ID, tree string, why purpose) (
	_ *restorer, end func(), err error,
) {
	leave, err := s.enter(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	m, err := s.manifest(id)
	if err != nil {
		leave()
		return nil, nil, err
	}
	t, err := s.openTarget(ctx, tree, why)
	if err != nil {
		leave()
		return nil, nil, err
	}
	if m.TreeKey != t.key && !t.named {
		t.close()
		leave()
		return nil, nil, &TargetError{Path: t.path, Reason: fmt.Sprintf(
			"the checkpoint is of another tree, %s; name an empty directory in Options.Roots to restore it elsewhere", m.Tree)}
	}
	r := s.newRestorer(id, m, t)
	r.journal = &journal{Store: s.id, TreeKey: t.key, To: id, Foreign: s.options.Foreign, MTime: s.options.MTime}
	return r, func() { t.close(); leave() }, nil
}

func (s *Store) newRestorer(id ID, m manifest, t *target) *restorer {
	return &restorer{
		s: s, id: id, manifest: m, target: t, staging: -1, name: "restore", synced: map[string]bool{},
		trees: &treeReader{read: s.tree}, out: &Restoration{Tree: t.path, To: id},
	}
}

func (r *restorer) step(name string) { r.s.step(r.name + "/" + name) }

// restore reads, compares, stages, commits and goes forward. Everything up to the commit is undone if it fails.
func (r *restorer) restore(ctx context.Context) (*Restoration, error) {
	start := time.Now()
	left, err := r.s.sweepStaging(ctx, r.target)
	if err != nil {
		return nil, before("leftovers", err)
	}
	if left != nil {
		r.out.Quarantined = left.Quarantined
	}
	c, err := r.s.capture(ctx, r.target, r.captureOptions(false))
	if err != nil {
		return nil, before("scan", err)
	}
	defer c.abort()
	r.step("scanned")
	r.found = c.result
	p, err := r.compare()
	if err != nil {
		return nil, before("compare", corrupt(r.id, err))
	}
	r.report(p)
	if p.done() {
		r.out.Digest, r.out.Timing.Scan = digestOf(r.found.Root), time.Since(start)
		return r.out, r.incomplete(p)
	}
	if err := r.preflight(p); err != nil {
		return nil, before("preflight", err)
	}
	safety, err := c.seal(ctx, Meta{}, Safety)
	if err != nil {
		return nil, before("safety checkpoint", err)
	}
	r.step("safety")
	r.out.Safety, r.journal.Safety = safety.ID, safety.ID
	r.out.Timing.Scan = time.Since(start)

	start = time.Now()
	defer r.closeStaging()
	if err := r.prepare(ctx, p); err != nil {
		return nil, before("stage", errors.Join(corrupt(r.id, err), r.undo()))
	}
	if committed, err := r.commit(); err != nil {
		if committed {
			return r.out, after("commit", err)
		}
		return nil, before("commit", errors.Join(err, r.undo()))
	}
	r.out.Timing.Stage = time.Since(start)
	if err := r.useStaging(); err != nil {
		return r.out, after("apply", err)
	}
	return r.forward(context.WithoutCancel(ctx), p)
}

// prepare does what has to be there before the restore is committed.
func (r *restorer) prepare(ctx context.Context, p *plan) error {
	if err := r.makeStaging(); err != nil {
		return err
	}
	r.step("staging")
	if err := errors.Join(r.checkFolding(p), r.tryDirs(p)); err != nil {
		return err
	}
	r.assign(p, func(_ string, was *scan.Node) known {
		if was == nil {
			return known{}
		}
		return knownOf(&was.Entry) // the safety checkpoint is this scan
	})
	if err := r.stage(ctx, p); err != nil {
		return err
	}
	r.step("synced")
	return ctx.Err()
}

// commit writes the journal. Should the first one fail halfway, it is taken back; committed says that even this failed.
// A later one replaces the journal before it in one step, so that either of the two stands, and both are right.
func (r *restorer) commit() (committed bool, err error) {
	data := r.journal.encode(r.s.options.Key)
	if len(data) > maxJournal {
		return false, fmt.Errorf("%w: a journal of %d bytes", ErrTooLarge, len(data))
	}
	name := journalPath(r.target.key)
	switch err := r.s.writeFile(name, data); {
	case err != nil && r.journaled:
		return true, err
	case err != nil:
		if left := r.s.dir.Remove(name); left != nil {
			return true, err
		}
		return false, errors.Join(err, r.s.dir.SyncDir(parentOf(name)))
	}
	r.journaled = true
	r.step("committed")
	return true, nil
}

// forward applies a plan and compares again, until tree and checkpoint are equal, and then cleans up. It stops at
// errors of the system only; the journal then stays.
func (r *restorer) forward(ctx context.Context, p *plan) (*Restoration, error) {
	start := time.Now()
	for round := 1; !p.done(); round++ {
		if round > maxRounds {
			return r.out, after("apply", &UnstableError{Paths: p.paths()})
		}
		err := r.apply(p)
		if err != nil {
			return r.out, after("apply", err)
		}
		r.step("applied")
		r.out.Timing.Apply += time.Since(start)
		start = time.Now()
		r.noteTouched(p)
		if p, err = r.again(ctx, p); err != nil {
			return r.out, after("verify", err)
		}
		r.out.Timing.Verify += time.Since(start)
		start = time.Now()
	}
	r.out.Digest = digestOf(r.found.Root)
	if want := r.manifest.digest(); len(p.stuck) == 0 && r.journal.MTime == MTimeExact && r.out.Digest != want {
		return r.out, after("verify", fmt.Errorf("the tree's digest is %x and not %x", r.out.Digest.Tree, want.Tree))
	}
	r.step("verified")
	if err := r.finish(ctx); err != nil {
		return r.out, after("clean up", err)
	}
	r.out.Timing.Apply += time.Since(start)
	r.out.Kept = p.kept
	return r.out, r.incomplete(p)
}

// again reads what was touched and compares. What it finds was put there by somebody else, since the safety checkpoint;
// a new journal says so before anything is moved.
func (r *restorer) again(ctx context.Context, p *plan) (*plan, error) {
	found, err := r.s.rescan(ctx, r.target, r.captureOptions(false), r.found, p.touched)
	if err != nil {
		return nil, err
	}
	r.found = found
	next, err := r.compare()
	if err != nil || next.done() {
		return next, err
	}
	r.s.log.Warn("rollback: the tree changed during the restore", "tree", r.target.path, "paths", quoted(next.paths()))
	return next, r.plan(ctx, next)
}

// plan stages and commits what a later comparison found.
func (r *restorer) plan(ctx context.Context, p *plan) error {
	r.assign(p, r.inSafety)
	if err := r.stage(ctx, p); err != nil {
		return err
	}
	_, err := r.commit()
	return err
}

// noteTouched collects what has to be flushed.
func (r *restorer) noteTouched(p *plan) {
	maps.Copy(r.synced, p.touched)
	for i := range p.set {
		r.synced[p.set[i].path] = true
	}
}

// setRoot gives the root its own attributes again, after the last name in it has gone.
func (r *restorer) setRoot() error {
	op := operation{do: doAttributes, path: ".", want: r.manifest.Root, was: r.found.Root}
	if err := r.attributes(&op); err != nil {
		return err
	}
	st, err := fsys.Fstat(r.target.fd)
	if err == nil { // for the cache: this change was ours
		r.found.Root.Stat.CtimeSec, r.found.Root.Stat.CtimeNsec = st.Ctim.Sec, uint32(st.Ctim.Nsec)
	}
	return err
}

// before and after wrap an error by which side of the commit point it is on.
func before(phase string, err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		err = fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return &RestoreError{Phase: phase, Err: err}
}

func after(phase string, err error) error {
	return &RestoreError{Phase: phase, Committed: true, Err: err}
}
