// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ErrForeignPlan means that a plan was made for another tree, or under another policy, than what it should explain.
var ErrForeignPlan = errors.New("the plan is of another tree or policy")

// Verify compares the tree with what was sealed. Call it only when every process of the run is dead. It reads every
// recorded file again and trusts no time or size. A difference is a *TamperError that names all of it.
func (m *Manifest) Verify(t *Tree) error {
	after, _, err := m.again(t, nil)
	if err != nil {
		return err
	}
	return m.compare(after).orNil()
}

// VerifyWithin compares a full manifest with the tree: whatever changed must be in the plan, with the planned bytes, or
// match one of the outputs that the run declared (patterns as in a surface rule). An output is a regular file with one
// link, or a directory. A protected name is excused by neither. The plan may be nil: then only outputs may have
// changed. It fails with ErrForeignPlan if the plan was made for another tree or under another policy than the
// manifest.
func (m *Manifest) VerifyWithin(t *Tree, plan *Plan, outputs []string) error {
	_, err := m.Next(t, plan, outputs)
	return err
}

// Next is VerifyWithin for a caller who goes on from there: it returns what it found, as SealFull would, without
// reading the tree another time.
func (m *Manifest) Next(t *Tree, plan *Plan, outputs []string) (*Manifest, error) {
	return m.next(t, plan, outputs, nil)
}

// Recheck is Next without outputs, for a caller who has kept the tree to itself since the manifest was made. It looks
// at every name, and reads the content of those files again of which the kernel's times of change do not say that they
// are as they were. Somebody who can set the clock, or holds a page of a file that was mapped and written to before,
// can deceive it; Next it is that proves. A manifest of Recheck vouches for no more than the one that it was made from.
func (m *Manifest) Recheck(t *Tree, plan *Plan) (*Manifest, error) {
	return m.next(t, plan, nil, m)
}

func (m *Manifest) next(t *Tree, plan *Plan, outputs []string, known *Manifest) (*Manifest, error) {
	if !m.full {
		return nil, errors.New("allowlist: verify: the manifest has protected names only; seal with SealFull")
	}
	patterns, err := outputPatterns(outputs)
	if err != nil {
		return nil, err
	}
	if plan != nil && (!plan.tree.self.same(t.self) || plan.policy.digest != m.pdigest) {
		return nil, fmt.Errorf("allowlist: verify: plan %s: %w", plan.digest, ErrForeignPlan)
	}
	after, tp, err := m.again(t, known)
	if err != nil {
		return nil, err
	}
	x := excuses{after: after, tp: tp, outputs: patterns, planned: map[string]*change{}}
	if plan != nil {
		for i := range plan.changes {
			x.planned[plan.changes[i].Path] = &plan.changes[i]
		}
	}
	found := m.compare(after)
	x.parents(found.Added)
	if err := found.without(x.excused).orNil(); err != nil {
		return nil, err
	}
	after.policy, after.pdigest = m.policy, m.pdigest
	return after, nil
}

// again records the tree as the manifest did.
func (m *Manifest) again(t *Tree, known *Manifest) (*Manifest, *treePolicy, error) {
	if m.policy == nil {
		return nil, nil, errors.New("allowlist: verify: an empty manifest proves nothing; seal first")
	}
	release, err := t.use()
	if err != nil {
		return nil, nil, err
	}
	defer release()
	tp, err := t.policy(m.policy)
	if err != nil {
		return nil, nil, fmt.Errorf("allowlist: verify: %w", err)
	}
	after, err := t.record(tp, recording{full: m.full, hash: true, many: len(m.records), known: known})
	if err != nil {
		return nil, nil, fmt.Errorf("allowlist: verify: %w", err)
	}
	return after, tp, nil
}

func outputPatterns(outputs []string) ([]string, error) {
	patterns := make([]string, len(outputs))
	for i, p := range outputs {
		if strings.HasSuffix(p, "/") {
			p += "**"
		}
		if p == "" || strings.HasPrefix(p, "/") || strings.Contains(p, `\`) || !doublestar.ValidatePattern(p) {
			return nil, fmt.Errorf("allowlist: verify: output pattern %+q is not a relative pattern", p)
		}
		patterns[i] = p
	}
	return patterns, nil
}

// excuses decides which changes were permitted.
type excuses struct {
	after   *Manifest
	tp      *treePolicy
	planned map[string]*change
	outputs []string
	dirs    map[string]bool // new directories on the way to permitted new files
}

// parents excuses the directories that permitted files need. An empty new directory stays a change.
func (x *excuses) parents(added []string) {
	x.dirs = map[string]bool{}
	for _, path := range added {
		if !x.excused(path) {
			continue
		}
		for _, dir := range ancestors(path) {
			x.dirs[dir] = true
		}
	}
}

func (x *excuses) excused(path string) bool {
	if x.tp.guards(path) {
		return false
	}
	if c := x.planned[path]; c != nil && x.asPlanned(c) {
		return true
	}
	is, present := x.after.records[path]
	if present && is.kind == kindDir && x.dirs[path] {
		return true
	}
	if present && is.kind != kindDir && (is.kind != kindFile || is.nlink != 1) {
		return false
	}
	for _, pattern := range x.outputs {
		if doublestar.MatchUnvalidated(pattern, path) {
			return true
		}
	}
	return false
}

// asPlanned tells whether a planned path is in the planned state.
func (x *excuses) asPlanned(c *change) bool {
	is, present := x.after.records[c.Path]
	if c.Op == Delete {
		return !present
	}
	return present && is.kind == kindFile && is.nlink == 1 && is.perm == c.resultPerm() && is.digest == Sum(c.Content)
}
