// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// txn writes a set of changes, all or none. Everything it does is pushed on a stack of undo steps, and any failure runs
// the stack backwards.
type txn struct {
	ctx     context.Context
	tree    *Tree
	policy  *treePolicy
	changes []change
	view    *view
	staged  []*stagedChange
	made    []madeDir
	emptied []madeDir // Revert: directories that go with the files in them
	touched map[string]*viewDir
	times   map[string]int64 // of the directories in touched, before they were
	former  map[string]int64 // Revert: the times that directories get back
	temps   map[string]bool  // paths of our staged files, which a walk of the tree must not take for changes
	undo    []func() error
	done    bool // complete; the files that were replaced are gone
	back    bool // takes another transaction back: not to be interrupted
}

// madeDir is a directory that Apply made, by its path, and its inode.
type madeDir struct {
	path string
	meta meta
}

// Apply writes the plan: all edits or none. On failure, also when ctx ends, the tree is as it was; the error is a
// *DeniedError if the tree no longer is what was judged, a *TamperError if something else wrote meanwhile, ErrApplied
// if the plan was used before, or a fault of the system.
//
// It is atomic against errors, not against the death of the process: afterwards the set may be half in place.
func (pl *Plan) Apply(ctx context.Context) (*Receipt, error) {
	if pl.used.Swap(true) {
		return nil, fmt.Errorf("allowlist: apply: plan %s: %w", pl.digest, ErrApplied)
	}
	release, err := pl.tree.use()
	if err != nil {
		return nil, err
	}
	defer release()
	x := newTxn(ctx, pl.tree, pl.policy, pl.changes)
	if err := x.run(); err != nil {
		pl.tree.auditApply(ctx, "allowlist: apply failed", pl, "", err)
		return nil, fmt.Errorf("allowlist: apply: %w", err)
	}
	r := newReceipt(pl, x)
	pl.tree.auditApply(ctx, "allowlist: applied", pl, r.digest, nil)
	return r, nil
}

func newTxn(ctx context.Context, t *Tree, tp *treePolicy, changes []change) *txn {
	return &txn{
		ctx: ctx, tree: t, policy: tp, changes: changes, view: t.newView(),
		touched: map[string]*viewDir{}, times: map[string]int64{}, temps: map[string]bool{},
	}
}

func (x *txn) run() (err error) {
	defer x.view.close()
	if err := x.onlyOurs(); err != nil {
		return err
	}
	before, err := x.snapshot()
	if err != nil {
		return err
	}
	// From here on the tree changes, and every way out but the last one restores it.
	if err := x.write(before); err != nil {
		return errors.Join(err, x.rollback())
	}
	err = x.clean()
	x.putTimes()
	if flushErr := x.flush(); flushErr != nil {
		return errors.Join(flushErr, err, x.takeBack())
	}
	return err
}

func (x *txn) write(before *Manifest) error {
	for i := range x.changes {
		if err := x.stage(&x.changes[i]); err != nil {
			return fmt.Errorf("%+q: %w", x.changes[i].Path, err)
		}
	}
	for _, s := range x.staged {
		if err := x.swap(s); err != nil {
			return fmt.Errorf("%+q: %w", s.Path, err)
		}
	}
	return x.verify(before)
}

// step is asked before each action: it is where ctx may end the work, and where tests let it fail.
func (x *txn) step(name string) error {
	if x.back {
		return nil
	}
	if err := x.ctx.Err(); err != nil {
		return err
	}
	if x.tree.opts.hook != nil {
		return x.tree.opts.hook(name)
	}
	return nil
}

// rollback undoes in reverse. It does not stop at an error: every step restores what it can.
func (x *txn) rollback() error {
	var err error
	for i := len(x.undo) - 1; i >= 0; i-- {
		err = errors.Join(err, x.undo[i]())
	}
	if x.tree.opts.Sync {
		for _, d := range x.touched {
			err = errors.Join(err, d.dir.sync())
		}
	}
	if err != nil {
		return fmt.Errorf("undo is incomplete: %w", err)
	}
	return nil
}

// clean removes the files that were replaced or deleted. The new state is complete and verified, so no failure here
// matters: what cannot be removed is a leftover that OpenTree sweeps.
func (x *txn) clean() error {
	x.done = true
	for _, s := range x.staged {
		if s.Op == Create {
			continue
		}
		if err := s.parent.dir.remove(s.temp); err != nil && !isAbsent(err) {
			x.tree.log.LogAttrs(x.ctx, slog.LevelWarn, "allowlist: replaced file left over",
				slog.String("path", fmt.Sprintf("%+q", join(s.parent.path, s.temp))), slog.Any("error", err))
		}
	}
	return x.removeDirs()
}

// touch notes that a directory is about to be changed, and what its time of modification was.
func (x *txn) touch(d *viewDir) error {
	if x.touched[d.path] != nil {
		return nil
	}
	m, err := d.dir.self()
	if err != nil {
		return err
	}
	x.touched[d.path], x.times[d.path] = d, m.mtime
	return nil
}

// putTimes gives directories their former times of modification. Nothing is decided by them, so no failure matters: it
// is for those who compare trees with their times, such as package rollback, and would take the tree for another one.
func (x *txn) putTimes() {
	for path, mtime := range x.former {
		d, err := x.view.directory(path)
		if err == nil {
			err = d.dir.setTime(".", mtime)
		}
		if err != nil && !isAbsent(err) { // absent: it was made by Apply
			x.untimed(path, err)
		}
	}
}

func (x *txn) untimed(path string, err error) {
	x.tree.log.LogAttrs(x.ctx, slog.LevelWarn, "allowlist: the time of modification stays another one",
		slog.String("path", fmt.Sprintf("%+q", path)), slog.Any("error", err))
}

// takeBack writes the old state again after a flush failed, from what is held in memory: the replaced files are gone.
func (x *txn) takeBack() error {
	y := newTxn(context.WithoutCancel(x.ctx), x.tree, x.policy, inverse(x.changes))
	y.emptied, y.former, y.back = x.made, x.times, true
	if err := y.run(); err != nil {
		return fmt.Errorf("undo is incomplete: %w", err)
	}
	x.done = false
	return nil
}

// flush makes contents and names durable. It is the last thing: one commit of the file system's journal then holds
// everything, where a flush of each staged file would cost one commit more.
func (x *txn) flush() error {
	if !x.tree.opts.Sync || x.back {
		return nil
	}
	for _, s := range x.staged {
		if err := x.step("flush"); err != nil {
			return err
		}
		if err := s.flush(); err != nil {
			return fmt.Errorf("flush %+q: %w", s.Path, err)
		}
	}
	for _, d := range x.touched {
		if err := x.step("flush directory"); err != nil {
			return err
		}
		if err := d.dir.sync(); err != nil {
			return err
		}
	}
	return nil
}

func (s *stagedChange) flush() error {
	if s.Op == Delete {
		return nil
	}
	f, m, err := s.parent.dir.openFile(s.base)
	if err != nil {
		return err
	}
	if !m.same(s.ours) {
		return errors.Join(&TamperError{Changed: []string{s.Path}}, f.Close())
	}
	return errors.Join(f.Sync(), f.Close())
}

func (t *Tree) auditApply(ctx context.Context, message string, pl *Plan, receipt string, err error) {
	level := slog.LevelInfo
	attrs := []slog.Attr{slog.String("policy", pl.policy.digest), slog.String("plan", pl.digest),
		slog.Int("edits", len(pl.changes))}
	if err != nil {
		level = slog.LevelError
		attrs = append(attrs, slog.Any("error", err))
	} else {
		attrs = append(attrs, slog.String("receipt", receipt))
	}
	t.log.LogAttrs(ctx, level, message, attrs...)
}
