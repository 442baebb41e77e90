// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/evoseal/containment/allowlist"
)

// recover puts the accepted tree back if the tree is another one, whoever made it so. What the variant's processes
// could still do is over: executors end them with the process that started them, and sweep when they are made.
func (b *Boundary) recover(ctx context.Context) (history, error) {
	h, err := readHistory(b.log)
	if err != nil {
		return h, err
	}
	ctx, cancel := context.WithTimeout(ctx, restoreTime) // another process may be restoring a tree of the same store
	defer cancel()
	err = b.c.Tree.Lend(func(string) error {
		_, err := b.c.Store.Recover(ctx)
		return err
	})
	if err != nil {
		return h, fmt.Errorf("%w: the store cannot finish what was interrupted: %w", ErrTreeUnknown, err)
	}
	if !h.known() {
		return h, nil
	}
	b.accepted.id, b.mark = h.accepted.Checkpoint, h.mark
	if b.accepted.digest, err = h.accepted.digest(); err != nil {
		return h, err
	}
	return h, b.reinstate(ctx, &h)
}

// reinstate compares the tree with the accepted one and restores it where they differ. A checkpoint that is missing or
// damaged, or a digest that is not the recorded one, is ErrTreeUnknown: nothing starts from a guess.
func (b *Boundary) reinstate(ctx context.Context, h *history) error {
	lost := func(err error) error {
		if ctx.Err() != nil { // nobody had the time to look: the next Open does
			return fmt.Errorf("isolation: %w", err)
		}
		return b.lose(h.last.Iteration, err)
	}
	c, err := b.c.Store.Get(ctx, b.accepted.id)
	if err != nil {
		return lost(err)
	}
	if c.Digest != b.accepted.digest {
		return lost(fmt.Errorf("the checkpoint has another digest than the log"))
	}
	if err := b.c.Store.Verify(ctx, b.accepted.id); err != nil {
		return lost(err)
	}
	now, err := b.digest(ctx)
	if err == nil && now.Tree == b.accepted.digest.Tree {
		if h.open() {
			return b.note(phaseBody{Phase: phaseRestored, Iteration: h.last.Iteration, Detail: "nothing had to be restored"})
		}
		return nil
	}
	// A tree that cannot be read is not the accepted one either.
	detail := fmt.Sprintf("the last phase is %q", h.last.Phase)
	if err != nil {
		detail += "; " + err.Error()
	}
	if err := b.note(phaseBody{Phase: phaseDifference, Iteration: h.last.Iteration, Detail: clip(detail)}); err != nil {
		return err
	}
	if err := b.note(phaseBody{Phase: phaseRestoring, Iteration: h.last.Iteration}); err != nil {
		return err
	}
	b.at("recovering")
	safety, err := b.putBack(ctx, b.accepted.id, b.accepted.digest)
	if err != nil {
		return lost(err)
	}
	b.warn(ctx, "isolation: the accepted tree was restored", "why", detail, "checkpoint", b.accepted.id,
		"replaced", safety)
	return b.note(phaseBody{Phase: phaseRestored, Iteration: h.last.Iteration, Safety: safety.String()})
}

// adopt makes the tree as it stands the accepted one: for good if it is the first of the run, else in this process's
// memory, since it was just compared.
func (b *Boundary) adopt(ctx context.Context, h history) error {
	if !h.known() {
		c, err := b.checkpoint(ctx, b.c.RunID+": as it was given")
		if err != nil {
			return fmt.Errorf("isolation: the first checkpoint: %w", err)
		}
		b.accepted = accepted{id: c.ID, digest: c.Digest}
		b.at("baseline")
		if err := b.note(phaseBody{Phase: phaseBaseline}); err != nil {
			return err
		}
	}
	manifest, err := b.c.Edits.SealFull(b.c.Tree)
	if err != nil {
		return fmt.Errorf("isolation: %w", err)
	}
	b.accepted.manifest = manifest
	if err := errors.Join(b.complete(manifest), b.noReport(manifest)); err != nil {
		return err
	}
	// Compared once more: what was sealed is what the checkpoint holds.
	now, err := b.digest(ctx)
	if err != nil {
		return fmt.Errorf("isolation: %w", err)
	}
	if now.Content != b.accepted.digest.Content {
		return fmt.Errorf("%w: it changed while the boundary was opened; keep others from writing to it", ErrTreeUnknown)
	}
	return b.c.Store.Pin(ctx, b.accepted.id, pinReason(b.c.RunID))
}

// complete refuses a tree that holds what the store has left out, whatever its reason: it could not be taken back.
func (b *Boundary) complete(m *allowlist.Manifest) error {
	held, err := b.c.Store.FS(b.accepted.id)
	if err != nil {
		return fmt.Errorf("isolation: %w", err)
	}
	for name := range m.Files() {
		if versionControl(name) || !fs.ValidPath(name) {
			continue
		}
		if _, err := fs.Lstat(held, name); err != nil {
			return problem("the store has left out %+q, so it could not be taken back: remove it from the tree: %w", name, err)
		}
	}
	return nil
}

// noReport refuses a tree in which the report lies already that a run is to write: the judge would take it for the
// run's.
func (b *Boundary) noReport(m *allowlist.Manifest) (err error) {
	for name := range m.Files() {
		if path := b.reported([]allowlist.Edit{{Path: name}}); path != "" {
			err = errors.Join(err, problem("%+q is in the tree, and the run is to write it: remove it there", path))
		}
	}
	return err
}

// versionControl tells whether a file belongs to a repository, which no checkpoint holds. It is protected, and
// compared.
func versionControl(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if path.Base(dir) == ".git" {
			return true
		}
	}
	return path.Base(name) == ".git"
}
