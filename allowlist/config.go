// SPDX-License-Identifier: Apache-2.0

package allowlist

// Config is a policy as a plain value, for programs that do not read it from a file. New and Narrow hold it to the same
// rules as Load, and keep no reference to it.
type Config struct {
	// Surface lists what may change: at least one rule. What no rule matches is denied.
	Surface []SurfaceRule
	// Protect lists patterns of names that must not change, beside the default ones. A pattern of one component protects
	// that name at any depth, as do "dir/" and "dir/**"; one with a slash inside is anchored at the root. Everything below
	// a match is protected, too. No release lifts it.
	Protect []string
	// Gate lists patterns of what decides about a variant: evaluator, acceptance tests, detectors, their logging. It is
	// protected like Protect. It must be written out, even if it is empty: nil is an error for New.
	Gate []string
	// Release lifts default rules for the paths that it names.
	Release []Release
	// Limits of one set of edits. Nil means DefaultLimits for New, and those of the policy for Narrow. Otherwise every
	// field counts, and zero means none.
	Limits *Limits
}

// SurfaceRule is one mutable area.
type SurfaceRule struct {
	// Paths are patterns, anchored at the root and exact in case: at least one.
	Paths []string
	// Ops are the operations that the rule grants: at least one.
	Ops []Op
	// GoBodies names the functions of Go files whose bodies alone may change: "Name", "(T).Name" or "(*T).Name", as the
	// receiver is written in the source. Then Ops must be Modify alone, and every path must end in ".go".
	GoBodies []string
	// Regions are the markers between which alone lines may change. Then Ops must be Modify alone. Excludes GoBodies.
	Regions *Markers
	// Directives are the names of those that an edit may add, such as "go:build".
	Directives []string
}

// Markers are the texts that begin and end a mutable region of a file, each on a line of its own.
type Markers struct {
	Begin, End string
}

// Release lifts the default rules of class exec, deps, tool and opaque for the paths that match. Default rules of class
// core, Protect and Gate still hold, and a path must also be on a surface.
type Release struct {
	Pattern string // anchored at the root and exact in case, like a surface pattern
	Reason  string // required; it is for the reader of the policy
}
