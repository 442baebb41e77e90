// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"fmt"
	"os"
	"slices"
	"sync"
)

// treePolicy is a policy as it holds in one tree: with the core paths of that tree.
type treePolicy struct {
	*Policy
	plain     *Policy // without the git directories among the core paths
	file      meta    // of the policy file; zero if the policy was not read from one
	digest    string  // of the policy as it was loaded
	mu        sync.Mutex
	protected map[string]bool // remembered by path: a pure function of policy and name
}

// maxRemembered bounds the memory for remembered names; beyond it they are judged again each time.
const maxRemembered = 1 << 17

// maxPolicies is the number of policies whose names are remembered.
const maxPolicies = 8

// policy returns the policy with the tree's core paths. The policy file counts only where it lies inside the tree. It
// fails where that cannot be decided, and remembers no failure.
func (t *Tree) policy(p *Policy) (*treePolicy, error) {
	if known := t.policies[p]; known != nil {
		return known, nil
	}
	tp := &treePolicy{Policy: p, plain: p, digest: p.Digest(), protected: map[string]bool{}}
	core := slices.Clone(t.core)
	if file := p.File(); file != "" {
		var err error
		if core, tp.file, err = t.policyFile(core, file); err != nil {
			return nil, fmt.Errorf("policy file %+q: %w", file, err)
		}
	}
	if len(core) > 0 {
		tp.Policy = p.withCore(core)
		tp.plain = p.withCore(slices.DeleteFunc(core, func(r Rule) bool { return r.Reason == reasonGit }))
	}
	if len(t.policies) >= maxPolicies {
		clear(t.policies) // a host that narrows a policy for each candidate must not fill the memory
	}
	t.policies[p] = tp
	return tp, nil
}

// policyFile protects the policy file by its names and notes its inode. A tree that was moved, or a file that is gone,
// is an error: then no name says any more where the file is.
func (t *Tree) policyFile(core []Rule, file string) ([]Rule, meta, error) {
	if err := t.inPlace(); err != nil {
		return nil, meta{}, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, meta{}, err
	}
	m, err := metaOfInfo(info)
	if err != nil {
		return nil, meta{}, err
	}
	core, err = appendCore(core, t.path, file, "policy file")
	return core, m, err
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
