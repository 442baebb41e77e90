// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package rollback

import "context"

// Checkpoint returns [ErrUnsupported] on this system.
func (s *Store) Checkpoint(ctx context.Context, tree string, m Meta) (Checkpoint, error) {
	return Checkpoint{}, ErrUnsupported
}

// Digest returns [ErrUnsupported] on this system.
func (s *Store) Digest(ctx context.Context, tree string) (Digest, error) {
	return Digest{}, ErrUnsupported
}

// checkPlace is for systems on which trees can be registered.
func (s *Store) checkPlace() error { return nil }
