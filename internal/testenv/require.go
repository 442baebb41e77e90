// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"strings"
)

// requirement is the parsed value of CONTAINMENT_REQUIRE.
type requirement struct {
	all   bool
	names map[string]bool
}

// parseRequire reads a comma-separated list. An empty value demands nothing.
func parseRequire(value string) (requirement, error) {
	r := requirement{names: map[string]bool{}}
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		switch _, known := table[name]; {
		case name == "":
		case name == "all":
			r.all = true
		case known:
			r.names[name] = true
		default:
			return requirement{}, fmt.Errorf("testenv: %s names %q, which is not known; known are \"all\" and %v",
				RequireVariable, name, Components())
		}
	}
	return r, nil
}

// demands reports whether the component may not be missing. A name is demanded of everybody, also of a caller that
// cannot have it: whoever writes the name means it.
func (r requirement) demands(name string, c component, uid int) bool {
	return r.names[name] || r.all && c.demandedBy(uid)
}

// The rules by which "all" demands a component of the caller with this uid.
func everybody(int) bool         { return true }
func onlyRoot(uid int) bool      { return uid == 0 }
func onlyOrdinary(uid int) bool  { return uid != 0 }
func nobodyUnlessNamed(int) bool { return false }
