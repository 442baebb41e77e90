// SPDX-License-Identifier: Apache-2.0

package rollback

import "slices"

// Excluded returns the patterns of what this store neither captures nor touches: Options.Exclude, or its default.
func (s *Store) Excluded() []string { return slices.Clone(s.options.Exclude) }

// Foreign returns what becomes of things that a checkpoint does not know: Options.Foreign.
func (s *Store) Foreign() ForeignPolicy { return s.options.Foreign }
