// SPDX-License-Identifier: Apache-2.0

package allowlist

// check judges the content of an edit that every other rule allows: markers, then function bodies, then directives. It
// returns an empty code if the content is fine; otherwise the rule that decided, which is zero for a directive, and a
// detail without a byte of the file. Base is nil for a file that the edit creates. Several region scopes must hold
// together, so what may change is what lies inside all of them.
func (s scope) check(path string, base, content []byte, creates bool) (Code, Rule, string) {
	scoped := len(s.regions) > 0 || len(s.goBodies) > 0
	for _, r := range s.regions {
		if creates {
			return ErrOutsideRegion, r.rule, "a file under a region scope can only be modified"
		}
		if why := r.changed(base, content); why != "" {
			return ErrOutsideRegion, r.rule, why
		}
	}
	for _, g := range s.goBodies {
		if creates {
			return ErrOutsideRegion, g.rule, "a file under a region scope can only be modified"
		}
		if why := g.changed(base, content); why != "" {
			return ErrOutsideRegion, g.rule, why
		}
	}
	if why := s.addedDirective(path, base, content, creates, scoped); why != "" {
		return ErrDirective, Rule{}, why
	}
	return "", Rule{}, ""
}
