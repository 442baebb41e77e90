// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"fmt"
	"slices"
)

// snapshot notes the protected names before anything is written: with TreeOptions.Full the whole tree with digests.
func (x *txn) snapshot() (*Manifest, error) {
	if err := x.step("snapshot"); err != nil {
		return nil, err
	}
	return x.walk()
}

func (x *txn) walk() (*Manifest, error) {
	full := x.tree.opts.Full
	return x.tree.record(x.policy, recording{full: full, hash: full, skip: x.temps})
}

// verify looks at the tree by path, from the root, as anybody else will: every planned path holds the planned bytes, and
// nothing else that is watched has changed. The files that were replaced still exist, so a rollback is complete.
func (x *txn) verify(before *Manifest) error {
	found := &TamperError{}
	for i := range x.changes {
		if err := x.step("verify"); err != nil {
			return err
		}
		if err := x.verifyOne(&x.changes[i], found); err != nil {
			return fmt.Errorf("%+q: %w", x.changes[i].Path, err)
		}
	}
	if err := found.orNil(); err != nil {
		return err
	}
	expected := x.expected()
	after, err := x.walk()
	if err != nil {
		return err
	}
	return before.compare(after).without(func(path string) bool { return expected[path] }).orNil()
}

func (x *txn) verifyOne(c *change, found *TamperError) error {
	content, m, err := x.tree.readPath(c.Path)
	if _, ok := asRefusal(err); ok {
		note(&found.Retyped, c.Path)
		return nil
	}
	switch {
	case c.Op == Delete && isAbsent(err):
	case isAbsent(err):
		note(&found.Removed, c.Path)
	case err != nil:
		return err
	case c.Op == Delete:
		note(&found.Added, c.Path)
	case m.nlink != 1 || m.perm != c.resultPerm() || !bytes.Equal(content, c.Content):
		note(&found.Changed, c.Path)
	}
	return nil
}

// resultPerm is the permissions of the file after the change.
func (c *change) resultPerm() uint32 {
	if c.Op == Modify || c.restore {
		return c.meta.perm
	}
	return 0o644
}

// expected returns the paths that the set changes: the files and the directories made or removed for them.
func (x *txn) expected() map[string]bool {
	paths := map[string]bool{}
	for _, c := range x.changes {
		paths[c.Path] = true
	}
	for _, d := range slices.Concat(x.made, x.emptied) {
		paths[d.path] = true
	}
	return paths
}
