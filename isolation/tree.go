// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/rollback"
)

// accepted is the tree as it was accepted last.
type accepted struct {
	id       rollback.ID
	digest   rollback.Digest
	manifest *allowlist.Manifest // every name, as it stood when it was accepted
}

// body returns it as the log has it.
func (a *accepted) body() (id rollback.ID, content, tree string) {
	return a.id, hex.EncodeToString(a.digest.Content[:]), hex.EncodeToString(a.digest.Tree[:])
}

// text names the content for people.
func (a *accepted) text() string {
	if a.id.IsZero() {
		return ""
	}
	return "sha256:" + hex.EncodeToString(a.digest.Content[:])
}

// restoreTime bounds a restoration, which does not end with the context of the step that made it necessary.
const restoreTime = 2 * time.Minute

// checkpoint captures the tree as it stands.
func (b *Boundary) checkpoint(ctx context.Context, label string) (c rollback.Checkpoint, err error) {
	err = b.c.Tree.Lend(func(dir string) error {
		c, err = b.c.Store.Checkpoint(ctx, dir, rollback.Meta{Label: label})
		return err
	})
	return c, err
}

// digest reads every byte of the tree.
func (b *Boundary) digest(ctx context.Context) (d rollback.Digest, err error) {
	err = b.c.Tree.Lend(func(dir string) error {
		d, err = b.c.Store.Digest(ctx, dir)
		return err
	})
	return d, err
}

// putBack makes the tree the checkpoint, and finishes that if it is interrupted. It returns the checkpoint of what was
// there before; zero if nothing had to change.
func (b *Boundary) putBack(ctx context.Context, id rollback.ID, want rollback.Digest) (safety rollback.ID, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTime)
	defer cancel()
	err = b.c.Tree.Lend(func(dir string) error {
		if _, err := b.c.Store.Recover(ctx); err != nil {
			return err
		}
		r, err := b.c.Store.Restore(ctx, id, dir)
		if errors.Is(err, rollback.ErrPending) {
			if _, again := b.c.Store.Recover(ctx); again != nil {
				return errors.Join(err, again)
			}
			r, err = b.c.Store.Restore(ctx, id, dir)
		}
		if err != nil {
			return err
		}
		// A store that touches the times of what it rewrites has another digest of the whole then; it has compared the rest.
		if safety = r.Safety; r.Digest.Content != want.Content {
			return fmt.Errorf("the restored tree has the content %x, and the checkpoint %x", r.Digest.Content, want.Content)
		}
		return nil
	})
	return safety, err
}

// restore puts the accepted tree back and proves that it is there. Should that fail, nothing goes on.
func (b *Boundary) restore(ctx context.Context, n int) error {
	// A log that fails must not keep the tree from being restored.
	note := b.note(phaseBody{Phase: phaseRestoring, Iteration: n})
	b.at("restoring")
	safety, err := b.putBack(ctx, b.accepted.id, b.accepted.digest)
	if err == nil {
		err = b.drift()
	}
	if err != nil {
		return b.lose(n, err)
	}
	b.at("restored")
	done := phaseBody{Phase: phaseRestored, Iteration: n}
	if !safety.IsZero() {
		done.Safety = safety.String()
	}
	if err := errors.Join(note, b.note(done)); err != nil {
		b.warn(ctx, "isolation: the tree was restored, and that could not be recorded", "error", err)
	}
	return nil
}

// drift compares the tree with the accepted one. nil: they are equal.
func (b *Boundary) drift() error {
	manifest, err := b.accepted.manifest.Recheck(b.c.Tree, nil)
	if err == nil {
		b.accepted.manifest = manifest
	}
	return err
}

// lose notes that nobody knows what is in the tree.
func (b *Boundary) lose(n int, cause error) error {
	err := fmt.Errorf("%w: checkpoint %s: %w; put the tree in order and begin another run id",
		ErrTreeUnknown, b.accepted.id, cause)
	if noted := b.note(phaseBody{Phase: phaseUnknown, Iteration: n, Detail: clip(cause.Error())}); noted != nil {
		err = errors.Join(err, noted)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost = err
	return err
}
