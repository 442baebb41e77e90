// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"fmt"
	"slices"
)

// Narrow returns a policy for one agent or one candidate: what it allows, p allows as well. A path must be on both
// surfaces, and both must grant the operation; protection adds up; of each limit the smaller holds, and nil keeps those
// of p. Gate and release of c must be empty: a part of a policy cannot say what decides about variants. A surface rule
// of c that can never allow anything is a problem. The error is a *ConfigError.
func (p *Policy) Narrow(c Config) (*Policy, error) {
	if p == nil || p.protect == nil {
		return nil, fmt.Errorf("%w: a zero Policy cannot be narrowed; make one with Load or New", ErrConfig)
	}
	var ps problems
	s := specOf(c)
	if len(c.Gate) > 0 {
		ps.at(s.at.in("gate"), "a narrowing cannot name a gate", "list the patterns in protect")
	}
	if len(c.Release) > 0 {
		ps.at(s.at.in("release"), "a narrowing cannot release anything", "release it in the policy itself")
	}
	s.gate, s.hasGate, s.release = nil, true, nil
	check := &checker{&ps}
	surface, protect := check.surface(s), check.protect(s)
	limits := check.limits(s, p.limit).minimum(p.limit)
	all := compileProtection(slices.Concat(p.protect.rules, protect))
	check.dead(surface, p.lifted, all, limits)
	check.unreachable(surface, p)
	if err := ps.err(); err != nil {
		return nil, err
	}
	q := *p
	q.protect, q.limit = all, limits
	q.layers = append(slices.Clone(p.layers), compileLayer(surface))
	q.canon.addLayer(surface)
	q.canon.addProtect(protect)
	q.digest = q.canon.digest(limits)
	return &q, nil
}

// unreachable reports the rules of a narrowing to which the policy grants nothing.
func (c *checker) unreachable(surface []*surfaceRule, p *Policy) {
	for _, r := range surface {
		if len(r.paths) > 0 && !slices.ContainsFunc(r.paths, func(path surfacePath) bool { return p.mayGrant(r, path) }) {
			c.ps.at(r.at, "the rule can never allow anything: the policy grants none of its operations on its paths",
				"take paths and operations from the policy's surface, or remove the rule")
		}
	}
}

// mayGrant reports whether every layer may grant some operation of the rule on some path that the pattern matches.
func (p *Policy) mayGrant(r *surfaceRule, path surfacePath) bool {
	for _, op := range []Op{Create, Modify, Delete} {
		if !r.ops[op] {
			continue
		}
		closed := slices.ContainsFunc(p.layers, func(l layer) bool {
			return !slices.ContainsFunc(l.entries, func(e surfaceEntry) bool {
				return e.surface.ops[op] && overlap(e.pattern, path.pattern)
			})
		})
		if !closed {
			return true
		}
	}
	return false
}
