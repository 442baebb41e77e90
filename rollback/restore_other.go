// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package rollback

import "context"

// Restore returns [ErrUnsupported] on this system.
func (s *Store) Restore(ctx context.Context, id ID, tree string) (*Restoration, error) {
	return nil, ErrUnsupported
}

// Plan returns [ErrUnsupported] on this system.
func (s *Store) Plan(ctx context.Context, id ID, tree string) (*Restoration, error) {
	return nil, ErrUnsupported
}

// Recover returns [ErrUnsupported] on this system.
func (s *Store) Recover(ctx context.Context) ([]Restoration, error) { return nil, ErrUnsupported }
