// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"errors"
	"fmt"

	"github.com/evoseal/containment/rollback/internal/scan"
)

// Checkpoint captures the tree. When it returns, the checkpoint survives the death of the process and of the machine.
// The first one of a tree registers its root as a tree of this store.
//
// The tree must be at rest: [ErrUnstable] if files or directories keep changing. Other errors match [ErrTarget],
// [ErrPending], [ErrTooLarge], [ErrNoSpace], [ErrUnsupported] for special and set-id files, or are those of reading;
// everything that is wrong with the tree is in one error, and there is no partial checkpoint.
func (s *Store) Checkpoint(ctx context.Context, tree string, m Meta) (Checkpoint, error) {
	leave, err := s.enter(ctx, false)
	if err != nil {
		return Checkpoint{}, err
	}
	defer leave()
	if err := checkMeta(m); err != nil {
		return Checkpoint{}, err
	}
	t, err := s.openTarget(ctx, tree, forCheckpoint)
	if err != nil {
		return Checkpoint{}, err
	}
	defer t.close()
	c, err := s.capture(ctx, t, captureOptions{
		Exclude: s.options.Exclude, Owner: s.options.Owner, Xattrs: s.options.Xattrs,
	})
	if err != nil {
		return Checkpoint{}, err
	}
	defer c.abort()
	return c.seal(ctx, m, User)
}

// Digest sums up a tree as [Store.Checkpoint] would, stores nothing, and reads every byte: no cache is believed. It
// works for any directory that could be a tree, registered or not.
func (s *Store) Digest(ctx context.Context, tree string) (Digest, error) {
	leave, err := s.enter(ctx, false)
	if err != nil {
		return Digest{}, err
	}
	defer leave()
	t, err := s.openTarget(ctx, tree, forDigest)
	if err != nil {
		return Digest{}, err
	}
	defer t.close()
	r, err := s.rescan(ctx, t, captureOptions{
		Exclude: s.options.Exclude, Owner: s.options.Owner, Xattrs: s.options.Xattrs,
	}, nil, nil)
	if err != nil {
		return Digest{}, err
	}
	return digestOf(r.Root), nil
}

// scanError makes what a scan found wrong the errors of this package.
func (s *Store) scanError(t *target, err error) error {
	var found *scan.Error
	if !errors.As(err, &found) {
		return fmt.Errorf("rollback: %s: %w", t.path, s.noSpace(err))
	}
	all := faults{}
	for _, err := range found.Failures {
		all.add(s.scanFailure(t, err))
	}
	if found.More > 0 {
		all.add(fmt.Errorf("rollback: %s: %d more failures", t.path, found.More))
	}
	return all.err()
}

func (s *Store) scanFailure(t *target, err error) error {
	var limit *scan.LimitError
	var unstable *scan.UnstableError
	var special *scan.SpecialError
	var setID *scan.SetIDError
	switch {
	case errors.As(err, &limit):
		return &LimitError{limit.Path, limit.Limit, limit.Value, limit.Bound}
	case errors.As(err, &unstable):
		return &UnstableError{unstable.Paths}
	case errors.As(err, &special):
		return fmt.Errorf("%w: %s: %w; remove them, exclude them or set Options.Special", ErrUnsupported, t.path, special)
	case errors.As(err, &setID):
		return fmt.Errorf("%w: %s: %w; take the bits away, exclude the files or set Options.Privileged",
			ErrUnsupported, t.path, setID)
	}
	return fmt.Errorf("rollback: %s: %w", t.path, s.noSpace(err))
}
