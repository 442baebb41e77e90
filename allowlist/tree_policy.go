// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"path/filepath"
	"sync"
)

// treePolicy is a policy as it holds in one tree: with the core paths of that tree.
type treePolicy struct {
	*Policy
	digest    string // of the policy as it was loaded
	mu        sync.Mutex
	protected map[string]bool // remembered by path: a pure function of policy and name
}

// maxRemembered bounds the memory for remembered names; beyond it they are judged again each time.
const maxRemembered = 1 << 17

// maxPolicies is the number of policies whose names are remembered.
const maxPolicies = 8

// policy returns the policy with the tree's core paths. The policy file counts only where it lies inside the tree.
func (t *Tree) policy(p *Policy) *treePolicy {
	if known := t.policies[p]; known != nil {
		return known
	}
	core := t.core
	if file := p.file(); file != "" {
		if root, err := filepath.EvalSymlinks(t.lock.Name()); err == nil {
			if abs, err := filepath.Abs(root); err == nil {
				core = appendCore(append([]Rule(nil), core...), abs, file, "policy file")
			}
		}
	}
	tp := &treePolicy{Policy: p, digest: p.Digest(), protected: map[string]bool{}}
	if len(core) > 0 {
		tp.Policy = p.withCore(core)
	}
	if len(t.policies) >= maxPolicies {
		clear(t.policies) // a host that narrows a policy for each candidate must not fill the memory
	}
	t.policies[p] = tp
	return tp
}

// guards is Policy.protects with a memory, for walks that ask the same names before and after.
func (tp *treePolicy) guards(path string) bool {
	tp.mu.Lock()
	known, ok := tp.protected[path]
	tp.mu.Unlock()
	if ok {
		return known
	}
	_, yes := tp.protects(path)
	tp.mu.Lock()
	defer tp.mu.Unlock()
	if len(tp.protected) < maxRemembered {
		tp.protected[path] = yes
	}
	return yes
}
