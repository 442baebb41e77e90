// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
)

// change is one edit of a plan with what was there when it was judged.
type change struct {
	Edit
	old  []byte // content that is replaced or deleted
	meta meta   // of the file that is replaced or deleted
	read bool   // old and meta are those of the file
	// Of the file that results, where Revert restores one: permissions and owner. A plan leaves restore false: new
	// files are 0644 and belong to the caller.
	restore bool
}

// Plan is a set of edits that was judged and allowed. It holds copies: what the caller does to the edits afterwards
// changes nothing. It applies once.
type Plan struct {
	tree      *Tree
	policy    *treePolicy
	changes   []change
	decisions []Decision
	digest    string
	used      atomic.Bool
}

// Plan judges all edits against the policy and the tree. It writes nothing. If any edit is denied, the error is a
// *DeniedError that holds every denial; any other error is a fault of the system, and denies too.
func (p *Policy) Plan(t *Tree, edits []Edit) (*Plan, error) {
	release, err := t.use()
	if err != nil {
		return nil, err
	}
	defer release()
	tp, err := t.policy(p)
	if err != nil {
		return nil, fmt.Errorf("allowlist: plan: %w", err)
	}
	j := judging{policy: tp, view: t.newView(), changes: copyEdits(edits)}
	defer j.view.close()
	if err := j.all(); err != nil {
		return nil, fmt.Errorf("allowlist: plan: %w", err)
	}
	plan := &Plan{tree: t, policy: tp, changes: j.changes, decisions: j.decisions}
	plan.digest = planDigest(tp.digest, plan.changes)
	plan.audit(context.Background())
	if err := denied(append(slices.Clone(j.decisions), j.set...)); err != nil {
		t.auditSet(j.set, tp.digest, plan.digest)
		return nil, err
	}
	return plan, nil
}

func copyEdits(edits []Edit) []change {
	changes := make([]change, len(edits))
	for i, e := range edits {
		e.Content = bytes.Clone(e.Content)
		if e.Op == Delete {
			e.Content = nil
		}
		changes[i] = change{Edit: e}
	}
	return changes
}

// Decisions returns one decision for each edit, in the order in which the edits were given.
func (pl *Plan) Decisions() []Decision { return slices.Clone(pl.decisions) }

// Digest identifies the edits and the policy that allowed them: "sha256:" and hexadecimal digits.
func (pl *Plan) Digest() string { return pl.digest }

// Diff returns the plan as a git patch, for audit and review. Nothing applies it.
func (pl *Plan) Diff() []byte {
	var b bytes.Buffer
	for _, c := range pl.changes {
		writeDiff(&b, c)
	}
	return b.Bytes()
}
