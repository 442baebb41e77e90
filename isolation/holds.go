// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/rollback"
)

// holds proves that a new checkpoint is the accepted one with the edits, and nothing else. To compare the tree before and
// after is not enough: somebody could write into it while it is captured, and take that back.
func (b *Boundary) holds(ctx context.Context, id rollback.ID, edits []allowlist.Edit) error {
	changes, err := b.c.Store.Diff(ctx, b.accepted.id, id)
	if err != nil {
		return err
	}
	was, err := b.c.Store.FS(b.accepted.id)
	if err != nil {
		return err
	}
	is, err := b.c.Store.FS(id)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if !excused(c, edits, was, is) {
			return fmt.Errorf("%w: the checkpoint differs in %+q, which was not planned", allowlist.ErrTampered, c.Path)
		}
	}
	for _, e := range edits {
		if err := heldAs(e, was, is); err != nil {
			return fmt.Errorf("%w: the checkpoint does not hold %+q as planned: %w", allowlist.ErrTampered, e.Path, err)
		}
	}
	return nil
}

// excused tells whether a difference is that of an edit, which is looked at by itself, a directory that was made or
// removed for one, or a time: a restoration may leave others.
func excused(c rollback.Change, edits []allowlist.Edit, was, is fs.FS) bool {
	above := c.Path == "."
	for _, e := range edits {
		if e.Path == c.Path {
			return true
		}
		above = above || strings.HasPrefix(e.Path, c.Path+"/")
	}
	if c.Op != rollback.Attributes {
		return above && (c.Op == rollback.Create || c.Op == rollback.Remove)
	}
	before, err := fs.Lstat(was, c.Path)
	if err != nil {
		return false
	}
	after, err := fs.Lstat(is, c.Path)
	return err == nil && before.Mode() == after.Mode()
}

// heldAs compares one edit with what the checkpoint has: a regular file with the planned bytes, and the mode that it had
// or that new files get.
func heldAs(e allowlist.Edit, was, is fs.FS) error {
	info, err := fs.Lstat(is, e.Path)
	if e.Op == allowlist.Delete {
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("it is still there (%v)", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if e.Op == allowlist.Modify {
		before, err := fs.Lstat(was, e.Path)
		if err != nil {
			return err
		}
		mode = before.Mode()
	}
	if info.Mode() != mode {
		return fmt.Errorf("its mode is %v, not %v", info.Mode(), mode)
	}
	content, err := fs.ReadFile(is, e.Path)
	if err == nil && !bytes.Equal(content, e.Content) {
		err = errors.New("its content is another one")
	}
	return err
}
