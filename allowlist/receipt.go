// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"context"
	"errors"
	"fmt"
)

// Receipt is the proof that a plan was applied, and the way back.
type Receipt struct {
	plan   *Plan
	made   []madeDir
	times  map[string]int64 // of modification, of the directories that Apply changed
	digest string
	used   bool // guarded by the tree
}

func newReceipt(pl *Plan, x *txn) *Receipt {
	r := &Receipt{plan: pl, made: x.made, times: x.times}
	h := newHasher("receipt v1")
	h.field([]byte(pl.digest))
	for _, s := range x.staged {
		h.number(uint64(s.resultPerm()))
		h.number(s.ours.dev) // zero for Delete
		h.number(s.ours.ino)
	}
	r.digest = h.digest()
	return r
}

// Digest identifies the plan and the files that were written: "sha256:" and hexadecimal digits.
func (r *Receipt) Digest() string { return r.digest }

// Revert puts back the bytes, permissions and times of modification that Apply replaced, and the times of the directories
// on the way, all or none, once. It is refused with a *DeniedError
// if any planned path has changed since, and fails with an error if a directory that Apply made holds anything else.
func (r *Receipt) Revert(ctx context.Context) error {
	t := r.plan.tree
	release, err := t.use()
	if err != nil {
		return err
	}
	defer release()
	if r.used {
		return fmt.Errorf("allowlist: revert: receipt %s: %w", r.digest, ErrApplied)
	}
	x := newTxn(ctx, t, r.plan.policy, inverse(r.plan.changes))
	x.emptied, x.former = r.made, r.times
	err = x.run()
	if x.done {
		r.used = true
	}
	if err != nil {
		t.auditApply(ctx, "allowlist: revert failed", r.plan, "", err)
		return fmt.Errorf("allowlist: revert: %w", err)
	}
	t.auditApply(ctx, "allowlist: reverted", r.plan, r.digest, nil)
	return nil
}

// inverse turns each change round. The policy is not asked: it may grant a Create and no Delete, and the way back leads
// only to bytes that were there.
func inverse(changes []change) []change {
	back := make([]change, len(changes))
	for i, c := range changes {
		b := change{Edit: Edit{Path: c.Path}, old: c.Content, meta: c.meta, restore: true}
		switch c.Op {
		case Create:
			b.Op, b.Base, b.meta = Delete, Sum(c.Content), meta{perm: c.resultPerm()}
		case Modify:
			b.Op, b.Base, b.Content = Modify, Sum(c.Content), c.old
		case Delete:
			b.Op, b.Content = Create, c.old
		}
		back[i] = b
	}
	return back
}

// onlyOurs refuses a Revert that would have to leave a directory behind: one that Apply made and that holds more now.
func (x *txn) onlyOurs() error {
	known := x.expected()
	for _, m := range x.emptied {
		d, err := x.view.directory(m.path)
		if err != nil {
			return fmt.Errorf("directory %+q: %w", m.path, err)
		}
		entries, err := d.dir.list()
		if err != nil {
			return err
		}
		for _, e := range entries {
			if path := join(m.path, e.name); !known[path] {
				return denied([]Decision{{Op: Create, Path: path, Code: ErrConflict,
					Detail: "it appeared since the set was applied", Hint: "Remove it, or keep the set."}})
			}
		}
	}
	return nil
}

// removeDirs removes the directories that Apply made, the deepest first. That they are empty is what rmdir asks.
func (x *txn) removeDirs() (err error) {
	for i := len(x.emptied) - 1; i >= 0; i-- {
		m := x.emptied[i]
		parentPath, base := split(m.path)
		parent, openErr := x.view.directory(parentPath)
		if openErr == nil {
			openErr = removeMade(parent.dir, base, m.meta)
		}
		if openErr != nil {
			err = errors.Join(err, fmt.Errorf("files are reverted, directory %+q stays: %w", m.path, openErr))
		}
	}
	return err
}
