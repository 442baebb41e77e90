// SPDX-License-Identifier: Apache-2.0

package rollback

import "slices"

// Excluded returns the patterns of what this store neither captures nor touches: Options.Exclude, or its default.
func (s *Store) Excluded() []string { return slices.Clone(s.options.Exclude) }

// Foreign returns what becomes of things that a checkpoint does not know: Options.Foreign.
func (s *Store) Foreign() ForeignPolicy { return s.options.Foreign }

// Durable tells whether what a call returned survives a power cut: Options.Sync is SyncDurable.
func (s *Store) Durable() bool { return s.sync() }

// Dir returns the store's own directory, absolute and without links.
func (s *Store) Dir() string { return s.path }
