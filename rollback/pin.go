// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"unicode/utf8"
)

// Pin keeps a checkpoint from being deleted until [Store.Unpin]. why is shown as Checkpoint.Pinned; it must not be empty.
// A second Pin replaces it. It is durable when Pin returns.
func (s *Store) Pin(ctx context.Context, id ID, why string) error {
	if why == "" || !utf8.ValidString(why) || len(why) > maxMetaBytes {
		return fmt.Errorf("rollback: a pin needs a reason, in valid UTF-8 and at most %d bytes: %w", maxMetaBytes, fs.ErrInvalid)
	}
	return s.mark(ctx, label{Op: labelPin, ID: id, Why: why})
}

// Unpin takes a pin back. A checkpoint that is not pinned is no error.
func (s *Store) Unpin(ctx context.Context, id ID) error {
	return s.mark(ctx, label{Op: labelUnpin, ID: id})
}

func (s *Store) mark(ctx context.Context, l label) error {
	leave, err := s.enter(ctx, false)
	if err != nil {
		return err
	}
	defer leave()
	if _, err := s.manifest(l.ID); err != nil {
		return err
	}
	pins, err := s.pins()
	if err != nil {
		return err
	}
	if pins[l.ID] == l.Why {
		return nil // so already; an Unpin has no reason
	}
	return s.addLabel(ctx, l)
}

// Delete removes a checkpoint. A pinned one is [ErrPinned]; one that an unfinished restore needs is [ErrPending]. The
// space is given back by [Store.Prune]. It waits for running checkpoints and restores until ctx ends.
func (s *Store) Delete(ctx context.Context, id ID) error {
	leave, err := s.enter(ctx, true)
	if err != nil {
		return err
	}
	defer leave()
	if _, err := s.dir.Lstat(manifestPath(id)); err != nil {
		_, err := s.manifest(id) // says it better; a damaged one can be deleted
		return err
	}
	pins, err := s.pins()
	if err != nil {
		return err
	}
	if why, pinned := pins[id]; pinned {
		return fmt.Errorf("rollback: checkpoint %s (%s): %w", id, why, ErrPinned)
	}
	needed, err := s.journalIDs()
	if err != nil {
		return err
	}
	if slices.Contains(needed, id) {
		return fmt.Errorf("rollback: checkpoint %s: %w", id, ErrPending)
	}
	return s.unlinkManifests([]ID{id})
}

// unlinkManifests ends checkpoints, durably.
func (s *Store) unlinkManifests(ids []ID) error {
	for _, id := range ids {
		if err := s.dir.Remove(manifestPath(id)); err != nil {
			return fmt.Errorf("rollback: %s: %w", s.path, err)
		}
		s.step("delete/manifest")
	}
	if err := s.dir.SyncDir(manifestsDir); err != nil {
		return fmt.Errorf("rollback: %s: %w", s.path, err)
	}
	return nil
}
