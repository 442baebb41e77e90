// SPDX-License-Identifier: Apache-2.0

package isolation

import "fmt"

// Every enumeration of this package is a byte whose zero value is the strictest one, and which travels as its name. A
// value that is not defined, however it came about, counts as the zero value: it prints with its number, so that
// a person sees the forgery, and is written as what it counts as.

// named returns the name of v, or the name of what it counts as with its number.
func named[T ~uint8](v T, names []string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", names[0], uint8(v))
}

// defined returns v, or zero for a value that has no name.
func defined[T ~uint8](v T, names []string) T {
	if int(v) < len(names) {
		return v
	}
	return 0
}

// parse finds the value of a name. Another text is an error and not the zero value: a typing error in a file must not
// pass for an answer, not even for the strictest one.
func parse[T ~uint8](v *T, what string, text []byte, names []string) error {
	for i, name := range names {
		if name == string(text) {
			*v = T(i)
			return nil
		}
	}
	return fmt.Errorf("%w: %q is not a %s; it is one of %q", ErrName, text, what, names)
}
