// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"github.com/evoseal/containment/rollback/internal/object"
)

// Generation names the packs that the set has now. Packs do not change, so whatever was present in a generation is present
// whenever the set is of that generation again. It is not ok while anything in the set is known to be damaged.
func (s *Set) Generation() (sum object.Hash, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	names := make([]object.Hash, 0, len(s.packs))
	for _, p := range s.packs {
		if p.fault != nil {
			return object.Hash{}, false
		}
		names = append(names, p.name)
	}
	slices.SortFunc(names, func(a, b object.Hash) int { return bytes.Compare(a[:], b[:]) })
	h := sha256.New()
	for i := range names {
		_, _ = h.Write(names[i][:]) // a hash returns no error
	}
	return object.Hash(h.Sum(nil)), len(s.bad) == 0
}
