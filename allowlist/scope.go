// SPDX-License-Identifier: Apache-2.0

package allowlist

// scope limits what may change inside a file, and which directives an edit may add. It is what the surface rules that
// match a path say together: every region scope must hold, granted directives add up.
type scope struct {
	goBodies   []goBodies // each must hold
	regions    []regions  // each must hold
	directives map[string]bool
}

type goBodies struct {
	funcs []string // "Name", "(T).Name", "(*T).Name"
	rule  Rule
}

type regions struct {
	begin, end string
	rule       Rule
}
