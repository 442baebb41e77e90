// SPDX-License-Identifier: Apache-2.0

package executor

// A pattern leaves the workspace if one of the texts it stands for begins with "/" or has ".." as a component. Braces
// and backslashes can hide both ("{/etc,a}/b", ".{.,a}/b", `.\./b`), and writing all alternatives out would be
// exponential. So the pattern is read once, and what is kept is the set of states in which the current component can be.

// component is a set of states.
type component uint8

const (
	atStart  component = 1 << iota // nothing yet, at the beginning of the pattern
	empty                          // nothing yet, after a slash
	oneDot                         // "."
	twoDots                        // ".."
	ordinary                       // anything else, wildcards included: the listing that they select from has no ".."
)

// escapes reports whether a valid pattern leaves the workspace.
func escapes(pattern string) bool {
	r := patternReader{rest: pattern}
	end := r.alternatives(atStart, false)
	return r.escaped || end&twoDots != 0
}

type patternReader struct {
	rest    string
	escaped bool
}

// alternatives reads up to the closing brace or the end, and returns the states in which any of the alternatives can
// end if they begin in the states given. Outside of braces there is only one: a comma is a letter there.
func (r *patternReader) alternatives(from component, inBraces bool) component {
	var ends component
	at := from
	for r.rest != "" {
		c := r.rest[0]
		r.rest = r.rest[1:]
		switch {
		case c == '{':
			at = r.alternatives(at, true)
		case c == ',' && inBraces:
			ends, at = ends|at, from
		case c == '}' && inBraces:
			return ends | at
		case c == '[':
			r.class()
			at = ordinary
		case c == '\\':
			if r.rest != "" {
				c, r.rest = r.rest[0], r.rest[1:]
			}
			at = r.literal(at, c)
		default:
			at = r.literal(at, c)
		}
	}
	return ends | at
}

// literal returns the states after one more byte.
func (r *patternReader) literal(at component, c byte) component {
	switch c {
	case '/':
		r.escaped = r.escaped || at&(atStart|twoDots) != 0
		return empty
	case '.':
		next := at & ordinary
		if at&(atStart|empty) != 0 {
			next |= oneDot
		}
		if at&oneDot != 0 {
			next |= twoDots
		}
		if at&twoDots != 0 {
			next |= ordinary // "..." is a name like any other
		}
		return next
	default:
		return ordinary
	}
}

// class skips the rest of a character class.
func (r *patternReader) class() {
	for i := 0; i < len(r.rest); i++ {
		switch {
		case r.rest[i] == '\\':
			i++
		case r.rest[i] == ']':
			r.rest = r.rest[i+1:]
			return
		}
	}
	r.rest = ""
}
