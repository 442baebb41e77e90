// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"fmt"
	"slices"
)

// SpliceGoBody returns src with the text between the braces of one function replaced by body, byte for byte. The name is
// written as in go_bodies: "Name", "(T).Name" or "(*T).Name". A generator that only ever sends a body cannot touch the
// rest of a file by mistake; the result is still an edit like any other, and Plan judges it, directives included.
//
// The result is what the scope of a rule with this one function lets through. If there is no such result, because the
// function does not exist exactly once with a body, or because the file does not parse with the new body, the error
// matches ErrOutsideRegion.
func SpliceGoBody(src []byte, fn string, body []byte) ([]byte, error) {
	scope := goBodies{funcs: []string{fn}}
	pieces, why := scope.outside(src)
	if why != "" {
		return nil, spliceError(fn, why)
	}
	out := slices.Concat(pieces[0], body, pieces[1])
	if why := scope.changed(src, out); why != "" {
		return nil, spliceError(fn, why)
	}
	return out, nil
}

func spliceError(fn, why string) error {
	return fmt.Errorf("allowlist: splice the body of %+q: %w: %s", fn, ErrOutsideRegion, why)
}
